// What several sections show of keys: bars of weights, a table of verdicts, a certificate as arithmetic.
import { html, scrolling } from '../kit/elements';
import { shown, vector } from '../views/select_table';
import { scaled } from '../views/select_model';
import { column, fenced, formula, keySymbol, number, operator, ofKey, row, scoreSymbol, sum, written } from './math';
import { headline, nameOf, stateOf, type Stage } from './stage';

export interface Part {
  element: HTMLElement;
  show(stage: Stage): void;
}

const swatch = (): HTMLElement => html('span', { class: 'swatch', 'aria-hidden': 'true' });
const keyClass = (key: number, more = ''): Record<string, string> => ({
  class: `key-${key + 1} ${more}`.trim(),
  'data-key': String(key + 1),
});

// Softmax weights of the current query, and ranks.
export function bars(count: number): Part {
  const rows = Array.from({ length: count }, (_, key) => {
    const fill = html('span', { class: 'bar-fill' }),
      value = html('span', { class: 'bar-value', 'data-testid': `bar-${key + 1}` });
    return {
      fill,
      value,
      element: html(
        'div',
        { ...keyClass(key, 'bar'), role: 'listitem' },
        html('span', { class: 'bar-name' }, nameOf(key)),
        html('span', { class: 'bar-track' }, fill),
        value,
      ),
    };
  });
  return {
    element: html(
      'div',
      { class: 'bars', role: 'list', 'aria-label': 'Attention weights of the query' },
      ...rows.map(({ element }) => element),
    ),
    show({ weights, ranks }) {
      rows.forEach(({ fill, value, element }, key) => {
        fill.style.width = `${(100 * weights[key]!).toFixed(1)}%`;
        value.textContent = `${(100 * weights[key]!).toFixed(0)} %`;
        element.dataset.rank = String(ranks[key]);
      });
    },
  };
}

// A row per key: where it is, its verdict and its margin.
export function table(count: number, testid: string): Part {
  const rows = Array.from({ length: count }, (_, key) => {
    const cells = [html('td', { class: 'number' }), html('td', { class: 'state' }), html('td', { class: 'number' })];
    return {
      cells,
      element: html(
        'tr',
        { ...keyClass(key), 'data-testid': `${testid}-row-${key + 1}` },
        html('th', { scope: 'row' }, swatch(), nameOf(key)),
        ...cells,
      ),
    };
  });
  const element = html(
    'table',
    { class: 'key-table' },
    html(
      'thead',
      {},
      html(
        'tr',
        {},
        ...['key', 'place', 'verdict', 'margin or depth'].map(heading => html('th', { scope: 'col' }, heading)),
      ),
    ),
    html('tbody', {}, ...rows.map(({ element: each }) => each)),
  );
  return {
    element: scrolling(html('div', { class: 'table-room' }, element)),
    show({ keys, set }) {
      rows.forEach(({ cells, element: line }, i) => {
        const key = set.keys[i]!;
        cells[0]!.textContent = vector(keys[i]!);
        cells[1]!.textContent = stateOf(key);
        cells[2]!.textContent =
          key.verdict === 'selectable' ? shown(key.margin) : key.verdict === 'unselectable' ? shown(key.depth) : '0';
        line.dataset.state = stateOf(key);
      });
    },
  };
}

// The verdicts in a sentence, said again to those who do not see the figure.
export function verdictLine(testid: string): Part {
  const element = html('p', { class: 'headline', 'aria-live': 'polite', 'data-testid': testid });
  return {
    element,
    show(stage) {
      const told = headline(stage);
      if (element.textContent !== told) element.textContent = told;
      element.dataset.hidden = String(stage.set.counts.unselectable);
    },
  };
}

// Weights to three decimals that sum to 1 as they are written: those that rounding down took most from get the rest.
function writtenWeights(weights: number[]): number[] {
  const parts = weights.map(weight => Math.floor(1000 * weight + 1e-9));
  const short = 1000 - parts.reduce((sum, part) => sum + part, 0);
  weights
    .map((weight, i) => ({ i, lost: 1000 * weight - parts[i]! }))
    .sort((a, b) => b.lost - a.lost)
    .slice(0, Math.max(0, short))
    .forEach(({ i }) => ++parts[i]!);
  return parts.map(part => part / 1000);
}
const weightOf = (weight: number): MathMLElement => number(weight.toFixed(3));
const factor = (value: number): MathMLElement =>
  written(value).startsWith('−') ? fenced('(', number(value), ')') : number(value);

// Why key `key` has its verdict: a mixture of others, or a query that puts it on top.
export function certificate(key: number, testid: string): Part {
  const element = html('div', { class: 'certificate', 'data-testid': testid });
  return {
    element,
    show({ keys, set, scores }) {
      const { verdict, robust, cover, witness, margin } = set.keys[key]!;
      element.dataset.state = stateOf(set.keys[key]!);
      if (verdict === 'unselectable' && cover.length > 0) {
        // What is written is rounded, so ≈: whoever computes with it arrives there up to the last digit.
        const weights = writtenWeights(cover.map(term => term.weight));
        const highest = scores.indexOf(Math.max(...scores));
        const spoken = cover.map(term => `${shown(term.weight)} times ${nameOf(term.index)}`).join(' plus ');
        element.replaceChildren(
          html(
            'p',
            { class: 'note' },
            `Certificate: ${nameOf(key)} is a mixture of others, with weights that sum to 1.`,
          ),
          formula(
            `${nameOf(key)} is ${spoken}`,
            row(
              keySymbol(key),
              operator('≈'),
              ...sum(cover.map((term, i) => row(weightOf(weights[i]!), keySymbol(term.index)))),
            ),
          ),
          formula(
            'the same with coordinates',
            row(
              column(key, keys[key]!),
              operator('≈'),
              ...sum(cover.map((term, i) => row(weightOf(weights[i]!), column(term.index, keys[term.index]!)))),
            ),
          ),
          formula(
            `so its score is the same mixture, ${shown(scores[key]!)}`,
            row(
              scoreSymbol(key),
              operator('≈'),
              ...sum(
                cover.map((term, i) =>
                  row(weightOf(weights[i]!), operator('·'), ofKey(term.index, factor(scores[term.index]!))),
                ),
              ),
              operator('≈'),
              ofKey(key, number(scores[key]!)),
            ),
          ),
          formula(
            `which is below ${shown(scores[highest]!)}, the score of ${nameOf(highest)}`,
            row(
              scoreSymbol(key),
              operator('<'),
              scoreSymbol(highest),
              operator('='),
              ofKey(highest, number(scores[highest]!)),
            ),
          ),
        );
        return;
      }
      if (verdict === 'selectable' && robust) {
        const query = scaled(witness),
          length = Math.hypot(...query);
        element.replaceChildren(
          html(
            'p',
            { class: 'note' },
            `Certificate: the query ${vector(query.map(value => value / length))} scores ${nameOf(key)} above every other key, by ${shown(margin)}.`,
          ),
        );
        return;
      }
      element.replaceChildren(
        html(
          'p',
          { class: 'note' },
          verdict === 'tied'
            ? `${nameOf(key)} is tied: some other key always scores at least as high.`
            : `${nameOf(key)} is tied up to rounding: the last digit of its coordinates decides, and no query can.`,
        ),
      );
    },
  };
}
