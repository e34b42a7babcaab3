// The parts that the views of depth and training are built of: layout, controls with their errors beside them, figures
// with downloads, a table of numbers, and a player over layers.
import './collapse_form.css';

// The colours of style.css: Okabe and Ito's, told apart with any colour vision, in tones that hold on the present ground.
export const palette = {
  blue: 'var(--colour-1)', vermillion: 'var(--colour-2)', green: 'var(--colour-3)', purple: 'var(--colour-4)', orange: 'var(--colour-5)',
  sky: 'var(--colour-6)', grey: 'var(--faint)', ground: 'var(--ground)',
};

// From dark blue over green to yellow: an order seen with any colour vision, and in grey.
export function ordered(share: number): string {
  const stops = [[59, 72, 152], [38, 116, 142], [32, 150, 128], [94, 188, 92], [205, 190, 32]] as const;
  const at = Math.min(0.9999, Math.max(0, share)) * (stops.length - 1), low = Math.floor(at), part = at - low;
  return `rgb(${stops[low]!.map((value, i) => Math.round(value + part * (stops[low + 1]![i]! - value))).join(' ')})`;
}

// What stands in the address was written by anyone.
export function numberOf(text: string, fallback: number, low = -Infinity, high = Infinity): number {
  const value = text.trim() === '' ? NaN : Number(text);
  return Number.isFinite(value) ? Math.min(high, Math.max(low, value)) : fallback;
}

export function scientific(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  const text = size >= 1e-3 && size < 1e5 ? value.toPrecision(5) : value.toExponential(3);
  return text.replaceAll('-', '−');
}

export function element<Name extends keyof HTMLElementTagNameMap>(name: Name, attributes: Record<string, string> = {},
  ...children: (Node | string)[]): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function layout(root: HTMLElement, id: string, title: string, words: string) {
  const controls = element('form', { class: 'depth-controls', 'aria-label': 'Settings' });
  controls.addEventListener('submit', event => event.preventDefault());
  const summary = element('p', { class: 'depth-summary', 'aria-live': 'polite', 'data-testid': `${id}-summary` });
  const figures = element('div', { class: 'depth-figures' });
  const numbers = element('table', { class: 'depth-numbers', 'aria-label': 'Numbers' });
  const side = element('div', { class: 'depth-main' }, summary, figures, numbers);
  root.replaceChildren(element('div', { class: 'depth', 'data-testid': `${id}-view` },
    element('h2', {}, title), element('p', { class: 'depth-words' }, words), element('div', { class: 'depth-columns' }, controls, side)));
  return { controls, figures, summary, numbers };
}

export interface Field<Value> {
  element: HTMLElement;
  set(value: Value): void;
  error(sentence: string | null): void;
}

function withError(id: string, label: string, inputs: HTMLElement[], hint?: string) {
  const problem = element('p', { class: 'depth-error', id: `${id}-error`, role: 'alert', 'data-testid': `${id}-error` });
  problem.hidden = true;
  const box = element('div', { class: 'depth-field' },
    element('label', { for: id }, label, ...(hint ? [element('small', {}, ` ${hint}`)] : [])),
    element('div', { class: inputs.length > 1 && inputs.some(input => input.tagName === 'SELECT') ? 'depth-inputs depth-stacked' : 'depth-inputs' }, ...inputs), problem);
  const error = (sentence: string | null): void => {
    problem.hidden = sentence === null;
    problem.textContent = sentence ?? '';
    for (const input of inputs) {
      if (sentence === null) {
        input.removeAttribute('aria-invalid');
        input.removeAttribute('aria-describedby');
      } else {
        input.setAttribute('aria-invalid', 'true');
        input.setAttribute('aria-describedby', problem.id);
      }
    }
  };
  return { element: box, error };
}

interface SliderSpec {
  id: string;
  label: string;
  hint?: string;
  unit?: string;
  min: number;
  max: number;
  step: number;
  value: number;
  logarithmic?: boolean;
  onInput: (value: string) => void;
}

// A slider and, beside it, the number, which can be typed and may leave the slider's range: the core says what can be.
export function slider(spec: SliderSpec): Field<number> {
  const positions = 1000, ratio = Math.log(spec.max / spec.min);
  const range = element('input', spec.logarithmic
    ? { id: spec.id, type: 'range', min: '0', max: String(positions), step: '1', 'data-testid': spec.id }
    : { id: spec.id, type: 'range', min: String(spec.min), max: String(spec.max), step: String(spec.step), 'data-testid': spec.id });
  const number = element('input', {
    type: 'number', step: 'any', 'aria-label': `${spec.label}, as a number`, 'data-testid': `${spec.id}-number`,
  });
  const { element: box, error } = withError(spec.id, spec.label + (spec.unit ? ` (${spec.unit})` : ''), [range, number], spec.hint);
  const show = (value: number): void => {
    const inside = Math.min(spec.max, Math.max(spec.min, Number.isFinite(value) ? value : spec.min));
    range.value = String(spec.logarithmic ? Math.round(positions * Math.log(inside / spec.min) / ratio) : inside);
    range.setAttribute('aria-valuetext', `${value}${spec.unit ?? ''}`);
  };
  range.addEventListener('input', () => {
    const value = spec.logarithmic ? spec.min * Math.exp(ratio * Number(range.value) / positions) : Number(range.value);
    number.value = String(spec.logarithmic ? Number(value.toPrecision(3)) : value);
    spec.onInput(number.value);
  });
  number.addEventListener('input', () => {
    if (number.value !== '') spec.onInput(number.value);
  });
  const set = (value: number): void => {
    show(value);
    if (document.activeElement !== number) number.value = String(value);
  };
  set(spec.value);
  return { element: box, set, error };
}

interface ChoiceSpec {
  id: string;
  label: string;
  options: [string, string][]; // value, words
  value: string;
  onInput: (value: string) => void;
}

export function choice(spec: ChoiceSpec): Field<string> {
  const select = element('select', { id: spec.id, 'data-testid': spec.id },
    ...spec.options.map(([value, words]) => element('option', { value }, words)));
  const { element: box, error } = withError(spec.id, spec.label, [select]);
  select.addEventListener('change', () => spec.onInput(select.value));
  const set = (value: string): void => {
    // A value from the address that the list does not have is shown as it is, and the core judges it.
    if (![...select.options].some(option => option.value === value)) select.append(element('option', { value }, value));
    select.value = value;
  };
  set(spec.value);
  return { element: box, set, error };
}

// Free text with examples to choose from.
export function textWithExamples(spec: ChoiceSpec): Field<string> {
  const text = element('input', { id: spec.id, type: 'text', spellcheck: 'false', autocomplete: 'off', placeholder: spec.value, 'data-testid': spec.id });
  const examples = element('select', { 'aria-label': `${spec.label}: examples`, 'data-testid': `${spec.id}-examples` },
    element('option', { value: '' }, 'examples …'), ...spec.options.map(([value, words]) => element('option', { value }, words)));
  const { element: box, error } = withError(spec.id, spec.label, [text, examples]);
  text.addEventListener('input', () => spec.onInput(text.value));
  examples.addEventListener('change', () => {
    if (examples.value === '') return;
    text.value = examples.value;
    spec.onInput(text.value);
  });
  const set = (value: string): void => {
    if (document.activeElement !== text) text.value = value; // never under the hands of who is typing
    examples.value = spec.options.some(([each]) => each === value) ? value : '';
  };
  set(spec.value);
  return { element: box, set, error };
}

export function button(words: string, onClick: () => void, testid: string): HTMLButtonElement {
  const made = element('button', { type: 'button', 'data-testid': testid }, words);
  made.addEventListener('click', onClick);
  return made;
}

interface PlayerSpec {
  id: string;
  label: string;
  max: number;
  value: number;
  perSecond: number;
  onInput: (value: number) => void;
  onStop: () => void;
}

// Play, pause, step and a slider over layers.
export function player(spec: PlayerSpec) {
  let max = spec.max, value = spec.value, timer: ReturnType<typeof setInterval> | undefined;
  const range = element('input', { type: 'range', min: '0', step: '1', id: spec.id, 'data-testid': spec.id });
  const output = element('output', { for: spec.id, 'data-testid': `${spec.id}-value` });
  const show = (): void => {
    range.max = String(max);
    range.value = String(value);
    output.textContent = `${value} of ${max}`;
  };
  const move = (to: number): void => {
    value = Math.min(max, Math.max(0, to));
    show();
    spec.onInput(value);
  };
  const stop = (): void => {
    if (timer === undefined) return;
    clearInterval(timer);
    timer = undefined;
    toggle.textContent = 'Play';
    spec.onStop();
  };
  const play = (): void => {
    if (timer !== undefined) return;
    if (value >= max) move(0);
    toggle.textContent = 'Pause';
    timer = setInterval(() => {
      if (value >= max) return stop();
      move(value + 1);
    }, 1000 / spec.perSecond);
  };
  const toggle = button('Play', () => (timer === undefined ? play() : stop()), `${spec.id}-play`);
  const step = (by: number) => (): void => {
    stop();
    move(value + by);
    spec.onStop();
  };
  const back = button('−1', step(-1), `${spec.id}-back`), forth = button('+1', step(1), `${spec.id}-forth`);
  back.setAttribute('aria-label', 'One layer back');
  forth.setAttribute('aria-label', 'One layer on');
  range.addEventListener('input', () => {
    stop();
    move(Number(range.value));
  });
  range.addEventListener('change', spec.onStop);
  show();
  return {
    element: element('div', { class: 'depth-player' }, toggle, back, forth, element('label', { for: spec.id }, spec.label), range, output),
    set(to: number, most = max): void {
      max = most;
      value = Math.min(max, Math.max(0, to));
      show();
    },
    play,
    stop,
  };
}

function download(name: string, type: string, text: string): void {
  const link = element('a', { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// As a file: the colours the page has now, by value.
function standalone(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const page = getComputedStyle(svg);
  copy.setAttribute('style', `color: ${page.color}; background: var(--ground)`);
  const text = new XMLSerializer().serializeToString(copy).replace(/var\((--[\w-]+)\)/g, (_, name: string) => page.getPropertyValue(name).trim());
  return `<?xml version="1.0" encoding="UTF-8"?>\n${text}\n`;
}

export function figure(spec: { id: string; name: string; title: string; csv: () => string }) {
  const body = element('div', { class: 'depth-figure-body', 'data-testid': spec.id });
  const foot = element('div', { class: 'depth-figure-foot' });
  const heading = element('span', {}, spec.title);
  const svg = button('SVG', () => {
    const drawn = body.querySelector('svg');
    if (drawn) download(`${spec.name}.svg`, 'image/svg+xml', standalone(drawn));
  }, `${spec.id}-svg`);
  const csv = button('CSV', () => download(`${spec.name}.csv`, 'text/csv', spec.csv()), `${spec.id}-csv`);
  svg.setAttribute('aria-label', `Save “${spec.title}” as SVG`);
  csv.setAttribute('aria-label', `Save the numbers of “${spec.title}” as CSV`);
  return {
    element: element('figure', { class: 'depth-figure' },
      element('figcaption', {}, heading, element('span', { class: 'depth-saves' }, svg, csv)), body, foot),
    body,
    foot,
    // Of a drawing that fills the body, so that its letters keep their size; 440 before there is a layout.
    width: (): number => Math.max(300, Math.min(620, body.clientWidth || 440)),
    title(words: string): void {
      heading.textContent = words;
    },
    show(drawn: SVGSVGElement): void {
      body.replaceChildren(drawn);
    },
  };
}

// Draws again when the window has another width; returns how to end it.
export function onResize(redraw: () => void): () => void {
  let asked = 0;
  const changed = (): void => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(redraw);
  };
  addEventListener('resize', changed);
  return () => {
    cancelAnimationFrame(asked);
    removeEventListener('resize', changed);
  };
}

// Rows of a label and one cell per column.
export interface Cell { words: string; testid: string; value: number | string }
export function numbersGrid(table: HTMLTableElement, header: string[], rows: [string, ...Cell[]][]): void {
  table.replaceChildren(
    element('thead', {}, element('tr', {}, element('td'), ...header.map(words => element('th', { scope: 'col' }, words)))),
    element('tbody', {}, ...rows.map(([label, ...cells]) => element('tr', {}, element('th', { scope: 'row' }, label),
      ...cells.map(cell => element('td', { 'data-testid': cell.testid, 'data-value': String(cell.value) }, cell.words))))));
}

// label, words, test id, the value unrounded
export function numbersTable(table: HTMLTableElement, rows: [string, string, string, number | string][]): void {
  const known = table.rows.length === rows.length;
  if (!known) table.replaceChildren(...rows.map(() => element('tr', {}, element('th', { scope: 'row' }), element('td'))));
  rows.forEach(([label, words, testid, value], i) => {
    const row = table.rows[i]!, cell = row.cells[1]!;
    row.cells[0]!.textContent = label;
    cell.textContent = words;
    cell.dataset.testid = testid;
    cell.dataset.value = String(value);
  });
}
