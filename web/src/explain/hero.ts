// The first screen: a hidden key, and the challenge to select it.
import { call } from '../core';
import { button } from '../kit/controls';
import { html } from '../kit/elements';
import { bars, certificate, verdictLine } from './parts';
import { coalesced, glide, type Context, type Mounted } from './section';
import { createSpace } from './space';
import { hidden, nameOf, spaceKeys, stageOf, type Setting, type Stage } from './stage';

const tries = 10_000;
const norms: [id: string, words: string, projected: number, scaled: number][] = [
  ['none', 'No norm', 0, 0],
  ['center', 'Projection', 1, 0],
  ['rmsnorm', 'Scaling', 0, 1],
  ['layernorm', 'LayerNorm', 1, 1],
];
const explained: Record<string, string> = {
  none: 'The keys as they are.',
  center: 'Projection: every key loses its mean and slides along 1 onto a plane.',
  rmsnorm: 'Scaling (RMSNorm): every key is brought to length √d, onto a sphere.',
  layernorm: 'LayerNorm: projection, then scaling. The keys lie on a circle.',
};

export function mountHero(root: HTMLElement, { core, still }: Context): Mounted {
  const setting: Setting = { keys: spaceKeys, query: [0.85, -0.5, -0.17], projected: 0, scaled: 0 };
  let stage: Stage,
    chosen = 'none',
    best = spaceKeys.length,
    solved = false,
    stop = (): void => {};

  const space = createSpace(core, {
    id: 'hero',
    label: 'Five keys in space, their hull and a query',
    winners: true,
    query: direction => {
      setting.query = direction;
      update();
    },
  });
  const verdict = verdictLine('hero-verdict'),
    weights = bars(spaceKeys.length),
    proof = certificate(hidden, 'hero-certificate');
  const rank = html('p', { class: 'rank', 'data-testid': 'challenge-rank' }),
    outcome = html('p', { class: 'outcome', role: 'status', 'data-testid': 'challenge-outcome' });
  const about = html('p', { class: 'note', 'data-testid': 'hero-norm' });
  const choices = norms.map(([id, words, projected, scaled]) => {
    const each = button(`hero-${id}`, words, () => {
      stop();
      chosen = id;
      best = spaceKeys.length;
      solved = false;
      outcome.textContent = '';
      const from = { ...setting };
      show();
      stop = glide(0, 1, still(), share => {
        setting.projected = share === 1 ? projected : from.projected + share * (projected - from.projected);
        setting.scaled = share === 1 ? scaled : from.scaled + share * (scaled - from.scaled);
        redraw();
      });
    });
    return each;
  });
  const attempt = button('challenge-try', `Try ${tries.toLocaleString('en')} random queries`, () => {
    const found = call<number>(core, 'rankTried', stage.keys.flat(), stage.keys.length, 3, hidden, tries, 1);
    outcome.textContent =
      found === 1
        ? `One of them put ${nameOf(hidden)} first. Find such a direction yourself: it has the colour of ${nameOf(hidden)}.`
        : `None of them put ${nameOf(hidden)} first; its best rank was ${found}. Trying is no proof, the arithmetic below is.`;
  });

  function show(): void {
    choices.forEach((each, i) => each.setAttribute('aria-pressed', String(norms[i]![0] === chosen)));
    about.textContent = explained[chosen]!;
  }
  function redraw(): void {
    stage = stageOf(core, setting);
    space.draw(stage, {
      before: spaceKeys,
      query: setting.query,
      plane: setting.projected > 0,
      sphere: setting.scaled > 0,
      moved: setting.projected > 0 || setting.scaled > 0,
    });
    verdict.show(stage);
    weights.show(stage);
    proof.show(stage);
    const now = stage.ranks[hidden]!;
    best = Math.min(best, now);
    rank.textContent = `${nameOf(hidden)} has rank ${now} of ${stage.ranks.length} now; best so far ${best}.`;
    rank.dataset.rank = String(now);
    rank.dataset.best = String(best);
    if (now === 1 && !solved) {
      solved = true;
      outcome.textContent = `Selected: this query gives ${nameOf(hidden)} the highest score. Without scaling, no query does.`;
    }
    root.dataset.solved = String(solved);
  }
  const update = coalesced(redraw);

  root.append(
    html(
      'div',
      { class: 'hero-words' },
      html('h2', { class: 'hero-title' }, 'Some keys can never be selected'),
      html(
        'p',
        { class: 'lead' },
        'Attention gives its highest weight to the key with the highest score. A key inside the hull of the others never has it, whatever the query; LayerNorm moves the keys so that each of them can.',
      ),
      html(
        'div',
        { class: 'challenge', role: 'group', 'aria-labelledby': 'challenge-title' },
        html('h3', { id: 'challenge-title' }, `Try to select ${nameOf(hidden)}`),
        html('p', {}, 'Drag the tip of the query q, or its dot on the sphere, or use the arrow keys.'),
        rank,
        html('div', { class: 'buttons' }, attempt),
        outcome,
      ),
      html(
        'div',
        { class: 'norm-choice', role: 'group', 'aria-label': 'Norm applied to the keys' },
        html('p', { class: 'choice-title' }, 'Then change the keys:'),
        html('div', { class: 'buttons' }, ...choices),
        about,
      ),
    ),
    html(
      'div',
      { class: 'hero-figure' },
      space.element,
      html('div', { class: 'under' }, verdict.element, weights.element, space.marks),
    ),
    html('div', { class: 'hero-proof' }, proof.element),
  );
  show();
  redraw();
  return { redraw, leave: () => {}, remove: () => stop() };
}
