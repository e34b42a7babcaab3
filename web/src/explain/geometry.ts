// Sections 1 to 5: scores, the hull, and what the two halves of LayerNorm do to it.
import { button, slider } from '../kit/controls';
import { html } from '../kit/elements';
import {
  bold,
  fenced,
  formula,
  identifier,
  keySymbol,
  m,
  norm,
  number,
  ofKey,
  operator,
  over,
  power,
  root,
  row,
  scoreSymbol,
  sub,
  words,
} from './math';
import { bars, certificate, table, verdictLine } from './parts';
import { createPlane } from './plane';
import { coalesced, glide, lab, note, paragraph, type Context, type Mounted, type Section } from './section';
import { createSpace } from './space';
import { hidden, long, nameOf, planeKeys, spaceKeys, stageOf, type Setting, type Stage } from './stage';

const count = planeKeys.length,
  longest = 3,
  planeExtent = 3.1;

// Key 3 of the plane at another length; its direction has length 1 up to the digits written.
const lengthened = (length: number): number[][] =>
  planeKeys.map((key, i) => (i === long ? key.map(value => value * length) : key));

export const shadow: Section = {
  id: 'score',
  title: 'A score is a shadow on the query',
  mount({ words: text, figure }, { core }) {
    const setting: Setting = { keys: lengthened(2.4), query: [0.92, 0.39], projected: 0, scaled: 0 };
    const plane = createPlane({
      id: 'score',
      label: 'Five keys in the plane and their shadows on the line of the query',
      extent: planeExtent,
      shadows: true,
      query: query => {
        setting.query = query;
        update();
      },
    });
    const weights = bars(count),
      scores = html('div', { class: 'live', 'data-testid': 'score-live' });
    text.append(
      paragraph(
        'A query scores a key by their inner product. For a query of length 1 this is how far the key reaches along it: the place of its shadow on the line of the query.',
      ),
      formula(
        'the score of key i is q times k i, the length of q times the length of k i times the cosine of their angle',
        row(
          sub(identifier('s'), 'i'),
          operator('='),
          bold('q'),
          operator('·'),
          sub(bold('k'), 'i'),
          operator('='),
          norm(bold('q')),
          norm(sub(bold('k'), 'i')),
          identifier('cos'),
          sub(identifier('θ'), 'i'),
        ),
      ),
      paragraph(
        'The shadow that falls furthest wins. Turn the query straight to Key 2: it does not help. Key 3 is longer, and its shadow reaches further still.',
      ),
      scores,
      note('The bars are the attention weights: softmax of the scores over a temperature of 0.5.'),
    );
    figure.append(plane.element, html('div', { class: 'under' }, weights.element));
    function redraw(): void {
      const stage = stageOf(core, setting);
      plane.draw(stage, setting.query);
      weights.show(stage);
      const winner = stage.ranks.indexOf(1);
      scores.replaceChildren(
        formula(
          'the scores of Key 2 and of the winner',
          row(
            scoreSymbol(hidden),
            operator('='),
            ofKey(hidden, number(stage.scores[hidden]!)),
            m('mspace', { width: '1.5em' }),
            scoreSymbol(winner),
            operator('='),
            ofKey(winner, number(stage.scores[winner]!)),
            m('mspace', { width: '0.5em' }),
            words('\u00a0highest'),
          ),
        ),
      );
    }
    const update = coalesced(redraw);
    redraw();
    return { redraw };
  },
};

export const hull: Section = {
  id: 'hull',
  title: 'The hull, and who owns which direction',
  mount({ words: text, figure }, { core }) {
    const setting: Setting = { keys: lengthened(1), query: [0.92, 0.39], projected: 0, scaled: 0 };
    const plane = createPlane({
      id: 'hull',
      label: 'Five keys, their hull, and on the ring the key that wins in each direction',
      extent: planeExtent,
      fan: true,
      hull: true,
      query: query => {
        setting.query = query;
        update();
      },
    });
    const verdict = verdictLine('hull-verdict'),
      rows = table(count, 'hull'),
      proof = certificate(hidden, 'hull-certificate');
    const magnitude = slider({
      id: 'hull-length',
      label: `Length of ${nameOf(long)}`,
      min: 1,
      max: longest,
      step: 0.05,
      format: value => value.toFixed(2),
      onInput: value => {
        setting.keys = lengthened(value);
        update();
      },
    });
    text.append(
      paragraph(
        'Draw a ring around the keys and colour each direction by the key that wins there. Only corners of the hull own a part of the ring. Make Key 3 longer: the part of Key 2 shrinks, and when Key 2 falls inside the hull it is gone.',
      ),
      paragraph('A key inside the hull is a mixture of others. Its score then is the same mixture of their scores:'),
      formula(
        'if k 2 is the sum of w j k j, with weights that are not negative and sum to one, then q times k 2 is the sum of w j q times k j, which is at most the highest of them',
        row(
          keySymbol(hidden),
          operator('='),
          m('munder', {}, operator('∑'), identifier('j')),
          sub(identifier('w'), 'j'),
          sub(bold('k'), 'j'),
          m('mspace', { width: '0.6em' }),
          operator('⇒'),
          m('mspace', { width: '0.6em' }),
          scoreSymbol(hidden),
          operator('='),
          m('munder', {}, operator('∑'), identifier('j')),
          sub(identifier('w'), 'j'),
          row(bold('q'), operator('·'), sub(bold('k'), 'j')),
          operator('≤'),
          m('munder', {}, identifier('max'), identifier('j')),
          row(bold('q'), operator('·'), sub(bold('k'), 'j')),
        ),
      ),
      paragraph(
        'That is Theorem 1 of Brody, Alon and Yahav (2023), and the reason why no query can help. For these keys the page does the arithmetic, under the figure.',
      ),
      lab('#select', 'Move the keys yourself, or open your own, in the Lab'),
    );
    figure.append(
      plane.element,
      html('div', { class: 'under' }, magnitude.element, verdict.element, proof.element, rows.element),
    );
    function redraw(): void {
      const stage = stageOf(core, setting);
      plane.draw(stage, setting.query);
      for (const part of [verdict, rows, proof]) part.show(stage);
    }
    const update = coalesced(redraw);
    magnitude.show(1);
    redraw();
    return { redraw };
  },
};

// A scrubber over the way of the keys through a norm, with Play.
function scrubber(
  id: string,
  label: string,
  most: number,
  { still }: Context,
  onInput: (value: number) => void,
  format: (value: number) => string,
  begin = 0,
) {
  let value = begin,
    stop = (): void => {};
  const range = slider({
    id,
    label,
    min: 0,
    max: most,
    step: 0.01,
    format,
    onInput: to => {
      stop();
      move(to);
    },
  });
  const move = (to: number): void => {
    value = to;
    range.show(to);
    onInput(to);
  };
  const play = button(`${id}-play`, 'Play', () => {
    stop();
    const from = value >= most ? 0 : value;
    stop = glide(from, most, still(), move, () => {}, 1400 * (most - from) + 200);
  });
  range.show(begin);
  return {
    element: html('div', { class: 'scrubber' }, play, range.element),
    stop: () => stop(),
  };
}

const percent = (value: number): string => `${(100 * value).toFixed(0)} %`;
// A way of two parts.
const halves = (value: number): string =>
  value <= 1 ? `projection ${percent(value)}` : `scaling ${percent(value - 1)}`;

interface Way {
  id: string;
  title: string;
  label: string;
  most: number;
  split: (value: number) => { projected: number; scaled: number };
  format: (value: number) => string;
  text: (live: HTMLElement) => (Node | string)[];
  live: (stage: Stage) => Node;
  plane: boolean;
  sphere: boolean;
  extra?: (text: HTMLElement, context: Context) => Mounted;
}

function way(spec: Way): Section {
  return {
    id: spec.id,
    title: spec.title,
    mount({ words: text, figure }, context) {
      const { core } = context;
      const setting: Setting = { keys: spaceKeys, query: [0.5, -0.72, -0.48], projected: 0, scaled: 0 };
      const space = createSpace(core, {
        id: spec.id,
        label: spec.label,
        winners: true,
        query: direction => {
          setting.query = direction;
          update();
        },
      });
      const verdict = verdictLine(`${spec.id}-verdict`),
        rows = table(count, spec.id),
        proof = certificate(hidden, `${spec.id}-certificate`),
        live = html('div', { class: 'live', 'data-testid': `${spec.id}-live` });
      const scrub = scrubber(
        `${spec.id}-way`,
        spec.label,
        spec.most,
        context,
        value => {
          Object.assign(setting, spec.split(value));
          update();
        },
        spec.format,
      );
      text.append(...spec.text(live));
      figure.append(
        space.element,
        html('div', { class: 'under' }, scrub.element, verdict.element, space.marks, proof.element, rows.element),
      );
      function redraw(): void {
        const stage = stageOf(core, setting);
        space.draw(stage, {
          before: spaceKeys,
          query: setting.query,
          plane: spec.plane,
          sphere: spec.sphere,
          moved: setting.projected > 0 || setting.scaled > 0,
        });
        for (const part of [verdict, rows, proof]) part.show(stage);
        live.replaceChildren(spec.live(stage));
      }
      const update = coalesced(redraw);
      redraw();
      const more = spec.extra?.(text, context);
      return {
        redraw() {
          redraw();
          more?.redraw?.();
        },
        leave: () => {
          scrub.stop();
          more?.leave?.();
        },
        remove: () => scrub.stop(),
      };
    },
  };
}

const placeOf = (stage: Stage): Node =>
  formula(
    'where Key 2 is now',
    row(
      keySymbol(hidden),
      operator('↦'),
      ofKey(
        hidden,
        fenced(
          '(',
          row(...stage.keys[hidden]!.flatMap((value, i) => [...(i ? [operator(',')] : []), number(value)])),
          ')',
        ),
      ),
    ),
  );

export const projection = way({
  id: 'projection',
  title: 'Projection: the keys glide along 1',
  label: 'Way along 1 to the plane',
  most: 1,
  split: value => ({ projected: value, scaled: 0 }),
  format: percent,
  plane: true,
  sphere: false,
  text: live => [
    paragraph(
      'LayerNorm first subtracts from every key the mean of its coordinates. In pictures: the key glides along the vector of ones, 1 = (1, …, 1), onto the plane orthogonal to it.',
    ),
    formula(
      'P k is k minus the mean of its coordinates times the vector of ones',
      row(
        identifier('P'),
        bold('k'),
        operator('='),
        bold('k'),
        operator('−'),
        over(row(power(bold('1'), operator('⊤')), bold('k')), identifier('d')),
        bold('1'),
      ),
    ),
    live,
    paragraph(
      'What does it buy? A query along 1 now scores all keys alike: attention can average over all of them, as a majority vote needs (section 10). It does not free Key 2. Mixtures stay mixtures under a linear map, so a key that was hidden stays hidden.',
    ),
  ],
  live: placeOf,
});

export const scaling = way({
  id: 'scaling',
  title: 'Scaling: the keys glide to the sphere',
  label: 'Way to the sphere of radius √d',
  most: 1,
  split: value => ({ projected: 0, scaled: value }),
  format: percent,
  plane: false,
  sphere: true,
  text: live => [
    paragraph(
      'The other half divides by the length. Every key moves along its own line until it has length √d; this alone is RMSNorm.',
    ),
    formula(
      'k goes to the square root of d times k over its length',
      row(bold('k'), operator('↦'), root(identifier('d')), over(bold('k'), norm(bold('k')))),
    ),
    live,
    paragraph(
      'A sphere is round: every point of it is a corner of the hull of any points on it. So every key can be selected, unless two are at the same place. Watch where on the way Key 2 comes out of the hull, and its colour appears on the sphere of directions.',
    ),
  ],
  live: placeOf,
});

export const both = way({
  id: 'layernorm',
  title: 'Both: LayerNorm',
  label: 'First the projection, then the scaling',
  most: 2,
  split: value => ({ projected: Math.min(1, value), scaled: Math.max(0, value - 1) }),
  format: halves,
  plane: true,
  sphere: true,
  text: live => [
    paragraph(
      'LayerNorm is one after the other. In three dimensions the keys end on a circle: the plane orthogonal to 1 meets the sphere of radius √d.',
    ),
    formula(
      'LayerNorm of k is the square root of d times P k over the length of P k',
      row(
        identifier('LayerNorm'),
        fenced('(', bold('k'), ')'),
        operator('='),
        root(identifier('d')),
        over(row(identifier('P'), bold('k')), norm(row(identifier('P'), bold('k')))),
      ),
    ),
    live,
    paragraph(
      'The projection makes “attend to all alike” a direction of its own; the scaling makes “attend to this one” possible for every key. Gain and bias, which follow in most models, move all keys by one linear map and change no verdict, as long as no gain is 0.',
    ),
  ],
  live: placeOf,
  extra: twoDimensions,
});

// The honest box: where the picture everyone draws breaks.
function twoDimensions(text: HTMLElement, context: Context): Mounted {
  const setting: Setting = { keys: lengthened(2.4), query: [0.92, 0.39], projected: 1, scaled: 1 };
  const plane = createPlane({
    id: 'two',
    label: 'Five keys in the plane on their way through LayerNorm: two points remain',
    extent: planeExtent,
    hull: true,
    onesLine: true,
  });
  const verdict = verdictLine('two-verdict');
  const scrub = scrubber(
    'two-way',
    'First the projection, then the scaling',
    2,
    context,
    value => {
      setting.projected = Math.min(1, value);
      setting.scaled = Math.max(0, value - 1);
      update();
    },
    halves,
    2,
  );
  text.append(
    html(
      'section',
      { class: 'box', 'aria-labelledby': 'two-title', 'data-testid': 'two-dimensions' },
      html('h3', { id: 'two-title' }, 'Why two dimensions fail'),
      paragraph(
        'A drawing on paper has two dimensions. There the “plane” orthogonal to 1 is a line, and a line meets a circle in two points: LayerNorm maps every key to one of them. Keys at one point always share their score.',
      ),
      plane.element,
      scrub.element,
      verdict.element,
      note(
        'Computed numbers differ in their last digit, and a hull test that takes it seriously calls one of the keys selectable. The page says “tied up to rounding” instead. From d = 3 on, random keys do not meet.',
      ),
    ),
  );
  function redraw(): void {
    const stage = stageOf(context.core, setting);
    plane.draw(stage, setting.query, setting.keys);
    verdict.show(stage);
  }
  const update = coalesced(redraw);
  redraw();
  return { redraw, leave: () => scrub.stop() };
}
