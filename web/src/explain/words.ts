// Section 7: a trained model, embedded: sentence, layer, head, hidden words.
import { segments, select } from '../kit/controls';
import { html } from '../kit/elements';
import { note, paragraph, type Section } from './section';

interface Spec {
  layers: number;
  heads: number;
  width: number;
  vocabulary: number;
  positions: number;
}
interface TokenSet {
  verdicts: string; // a letter per token: s, t, u, ?
  unselectable: number;
  share: number;
  rank: number;
}
interface Scan {
  tokens: { words: string; added: boolean; known: boolean }[];
  layers: { model: TokenSet; heads: TokenSet[] }[];
  cut: boolean;
}
interface ScannedModel {
  open(name: string): Spec & { error?: string };
  scan(text: string): Scan & { error?: string };
  delete(): void;
}

// Of words that the models know.
const sentences = [
  'A lighthouse is a tower built to carry a lamp that ships can see at night.',
  'Such a lens bends almost all of the light towards the horizon and weighs far less than a solid one of the same size.',
  'The oldest known lights were open fires on hills; later they were raised on platforms of stone.',
];
const told: Record<string, string> = { s: 'selectable', t: 'tied', u: 'hidden', '?': 'undecided' };

export const model: Section = {
  id: 'model',
  title: 'A real model: which words can a layer not select?',
  mount({ words: text, figure }, { core }) {
    const scanner = new (core as unknown as { ScannedModel: new () => ScannedModel }).ScannedModel();
    let spec: Spec,
      scan: Scan | undefined,
      norm = 'center',
      layer = 0,
      head = -1; // −1: what enters attention, before any head

    const input = html('textarea', { id: 'model-text', rows: '3', 'data-testid': 'model-text', spellcheck: 'false' });
    input.value = sentences[0]!;
    const problem = html('p', { class: 'failure', role: 'alert', 'data-testid': 'model-problem' });
    problem.hidden = true;
    const tokens = html('p', { class: 'sentence', 'data-testid': 'model-sentence' }),
      verdict = html('p', { class: 'headline', 'aria-live': 'polite', 'data-testid': 'model-verdict' }),
      about = note(),
      grid = html('table', { class: 'set-grid' });
    const examples = select(
      'model-example',
      'A sentence',
      [['', 'your own'], ...sentences.map((words, i): [string, string] => [String(i), words])],
      value => {
        if (value === '') return;
        input.value = sentences[Number(value)]!;
        run();
      },
    );
    const norms = segments(
      'model-norm',
      'The model was trained',
      [
        ['center', 'without scaling'],
        ['layernorm', 'with LayerNorm'],
      ],
      value => {
        norm = value;
        open();
      },
    );
    input.addEventListener('input', () => {
      examples.show(sentences.indexOf(input.value) < 0 ? '' : String(sentences.indexOf(input.value)));
      run();
    });
    text.append(
      paragraph(
        'These models are embedded in the page: a GPT-2 like the paper’s, but of 4 dimensions, so that one sentence is enough, trained on a short text; once with LayerNorm before attention and once with its projection alone. Type a sentence: it is cut into words, passes through the layers, and the keys of every layer are decided, here.',
      ),
      paragraph(
        'The first column is what enters attention, in all dimensions of the model: the paper’s keys. Without scaling some of them may be hidden; LayerNorm brings them to one length, and only its eps and rounding can hide one. The heads see less, a map of it into few dimensions, where many words are hidden either way. That LayerNorm lets every key be selected is said of the model’s space, not of its heads.',
      ),
      norms.element,
      examples.element,
      html('div', { class: 'control' }, html('label', { for: 'model-text' }, 'Words to scan'), input),
      problem,
      about,
    );
    figure.append(
      html('div', { class: 'under' }, html('h3', {}, 'Hidden words, by layer and head'), grid, tokens, verdict),
    );

    function open(): void {
      const answer = scanner.open(norm);
      if (answer.error !== undefined) return fail(answer.error);
      spec = answer;
      about.textContent = `${spec.layers} layers, ${spec.heads} heads, d = ${spec.width}, ${spec.vocabulary} words; heads of width ${spec.width / spec.heads}. Made by scripts/page-models.`;
      run();
    }
    function run(): void {
      const answer = scanner.scan(input.value);
      if (answer.error !== undefined) return fail(answer.error);
      problem.hidden = true;
      scan = answer;
      draw();
    }
    function fail(sentence: string): void {
      problem.textContent = sentence;
      problem.hidden = false;
    }
    const setOf = (l: number, h: number): TokenSet => (h < 0 ? scan!.layers[l]!.model : scan!.layers[l]!.heads[h]!);
    const nameOfSet = (l: number, h: number): string =>
      `layer ${l + 1}, ${h < 0 ? 'what enters attention' : `head ${h + 1}`}`;

    function draw(): void {
      const columns = [-1, ...Array.from({ length: spec.heads }, (_, h) => h)];
      const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.testid : undefined;
      grid.replaceChildren(
        html(
          'thead',
          {},
          html(
            'tr',
            {},
            html('td'),
            ...columns.map(h => html('th', { scope: 'col' }, h < 0 ? 'model' : `head ${h + 1}`)),
          ),
        ),
        html(
          'tbody',
          {},
          ...scan!.layers.map((_, l) =>
            html(
              'tr',
              {},
              html('th', { scope: 'row' }, `layer ${l + 1}`),
              ...columns.map(h => {
                const set = setOf(l, h);
                const cell = html(
                  'button',
                  {
                    type: 'button',
                    'aria-pressed': String(l === layer && h === head),
                    'aria-label': `${nameOfSet(l, h)}: ${set.unselectable} of ${scan!.tokens.length} hidden`,
                    'data-testid': `model-set-${l + 1}-${h + 1}`,
                    style: `--share: ${(100 * set.share).toFixed(0)}%`,
                  },
                  String(set.unselectable),
                );
                cell.addEventListener('click', () => {
                  layer = l;
                  head = h;
                  draw();
                });
                return html('td', {}, cell);
              }),
            ),
          ),
        ),
      );
      if (focused) grid.querySelector<HTMLElement>(`[data-testid="${focused}"]`)?.focus();
      const set = setOf(layer, head);
      tokens.replaceChildren(
        ...scan!.tokens.flatMap((token, i) => {
          const state = told[set.verdicts[i]!]!;
          return [
            html(
              'span',
              {
                class: `word ${state}${token.added ? ' added' : ''}${token.known ? '' : ' unknown'}`,
                title: `${state}${token.known ? '' : '; a word the model does not know'}`,
              },
              token.words,
            ),
            ' ',
          ];
        }),
      );
      const unknown = scan!.tokens.filter(token => !token.known).length;
      verdict.textContent =
        `In ${nameOfSet(layer, head)}, ${set.unselectable} of ${scan!.tokens.length} tokens can be selected by no query` +
        ` (struck through); the keys span ${set.rank} dimensions.` +
        (unknown > 0
          ? ` ${unknown} ${unknown === 1 ? 'word is' : 'words are'} not in its vocabulary and share one key.`
          : '') +
        (scan!.cut ? ` Only the first ${spec.positions} tokens are read.` : '');
    }
    norms.show(norm);
    examples.show('0');
    open();
    return { redraw: () => scan && draw(), remove: () => scanner.delete() };
  },
};
