// The table of verdicts, and the same numbers as CSV.
import { colour } from '../kit/palette';
import { html } from '../kit/elements';
import { scaled, type KeySet, type KeyVerdict } from './select_model';

export interface Listed {
  labels: string[]; // what each key is called
  numbers: string[]; // the number in that name
  norm: string;
  normed: ArrayLike<number>[];
  set: KeySet;
  weights?: Float64Array;
}

export function shown(value: number): string {
  if (Number.isNaN(value)) return '–'; // beyond doubles on the way to it
  if (value === Infinity) return '∞';
  if (value === 0) return '0';
  const text =
    Math.abs(value) >= 1e-3 && Math.abs(value) < 1e5 ? String(+value.toPrecision(4)) : value.toExponential(2);
  return text.replaceAll('-', '−');
}

export function vector(values: ArrayLike<number>): string {
  const most = 4;
  const parts = Array.from({ length: Math.min(values.length, most) }, (_, i) => shown(values[i]!));
  return `(${parts.join(', ')}${values.length > most ? ', …' : ''})`;
}

function certificate(key: KeyVerdict, labels: string[]): string {
  const most = 5;
  const mixture = () =>
    '= ' +
    key.cover
      .slice(0, most)
      .map(term => `${shown(term.weight)} · ${labels[term.index]}`)
      .join(' + ') +
    (key.cover.length > most ? ` + ${key.cover.length - most} more` : '');
  const query = () => {
    const witness = scaled(key.witness),
      length = Math.hypot(...witness);
    return vector(witness.map(value => value / length));
  };
  if (key.verdict === 'selectable')
    return labels.length === 1 ? 'The only key: every query selects it.' : `Query ${query()} scores it highest.`;
  if (key.verdict === 'unselectable') return mixture();
  if (key.verdict === 'undecided') return 'None: rational arithmetic would need more than it may take here.';
  const others = key.tiedWith
    .slice(0, most)
    .map(index => labels[index])
    .join(', ');
  return `${key.cover.length > 0 ? mixture() + '; ' : ''}${others ? `on top only together with ${others}` : 'on top, but never alone'}.`;
}

const mostRows = 200;
const fragile =
  'Decided exactly for the numbers given, but numbers that round to the same ones could have another verdict. A tie is always so.';

export function tableOf(listed: Listed, rename?: (index: number, label: string) => void): HTMLElement {
  const { labels, numbers, normed, set, weights } = listed;
  const keyHeading = listed.norm === 'none' ? 'key' : 'key after the norm';
  const rows = set.keys.slice(0, mostRows).map((key, i) => {
    const name = i + 1;
    let title: HTMLElement;
    if (rename) {
      const input = html('input', {
        type: 'text',
        maxlength: '40',
        'aria-label': `Name of key ${numbers[i]}`,
        'data-testid': `label-${name}`,
      });
      input.value = labels[i]!;
      input.addEventListener('change', () => rename(i, input.value.trim()));
      title = input;
    } else {
      title = html('span', {}, labels[i]!);
    }
    const cell = (heading: string, attributes: Record<string, string>, text: string) =>
      html('td', { 'data-heading': heading, ...attributes }, text);
    const amount = key.verdict === 'unselectable' ? key.depth : key.margin;
    return html(
      'tr',
      { 'data-testid': `row-${name}` },
      html(
        'th',
        { scope: 'row' },
        html('span', {
          class: 'swatch',
          style: `--swatch: ${rename ? colour(i) : 'transparent'}`,
          'aria-hidden': 'true',
        }),
        title,
      ),
      cell(keyHeading, { class: 'number' }, vector(normed[i]!)),
      html(
        'td',
        { 'data-heading': 'verdict' },
        html('span', { class: `verdict ${key.verdict}`, 'data-testid': `verdict-${name}` }, key.verdict),
        key.robust ? null : html('abbr', { class: 'fragile', title: fragile }, '≈'),
      ),
      cell(
        'margin',
        {
          class: 'number',
          'data-testid': `margin-${name}`,
          'data-value': String(key.verdict === 'selectable' ? key.margin : 0),
        },
        key.verdict === 'unselectable'
          ? Number.isNaN(amount)
            ? 'depth –'
            : `depth ≥ ${shown(amount)}`
          : key.verdict === 'tied'
            ? '0'
            : shown(amount),
      ),
      weights
        ? cell(
            'weight',
            { class: 'number', 'data-testid': `weight-${name}`, 'data-value': String(weights[i]) },
            weights[i]!.toFixed(3),
          )
        : null,
      cell('certificate', { class: 'certificate', 'data-testid': `certificate-${name}` }, certificate(key, labels)),
    );
  });
  return html(
    'div',
    { class: 'select-table' },
    html(
      'table',
      {},
      html(
        'thead',
        {},
        html(
          'tr',
          {},
          ...['name', keyHeading, 'verdict', 'margin', ...(weights ? ['weight'] : []), 'certificate'].map(text =>
            html('th', { scope: 'col' }, text),
          ),
        ),
      ),
      html('tbody', {}, ...rows),
    ),
    set.keys.slice(0, mostRows).every(key => key.robust)
      ? null
      : html('p', { class: 'note', 'data-testid': 'fragile-note' }, `≈ ${fragile}`),
    set.keys.length > mostRows
      ? html('p', { class: 'note' }, `The first ${mostRows} of ${set.keys.length} keys; the CSV holds all.`)
      : null,
  );
}

export function csvRows(listed: Listed): (string | number)[][] {
  const d = listed.normed[0]?.length ?? 0;
  const header = [
    'key',
    'label',
    ...Array.from({ length: d }, (_, c) => `x${c + 1}`),
    'verdict',
    'robust',
    'margin',
    'depth',
    'weight',
    'witness',
    'cover',
  ];
  return [
    header,
    ...listed.set.keys.map((key, i) => [
      listed.numbers[i]!,
      listed.labels[i]!,
      ...Array.from(listed.normed[i]!),
      key.verdict,
      String(key.robust),
      key.margin,
      key.depth,
      listed.weights?.[i] ?? '',
      Array.from(key.witness).join(' '),
      key.cover.map(term => `${term.weight}*${listed.numbers[term.index]}`).join(' '),
    ]),
  ];
}
