// The parts that the views of depth and training are built of: layout, controls with their errors beside them, figures
// with downloads, a table of numbers, and a player over layers.
import { download, downloadSvg } from '../kit/download';
import { html } from '../kit/elements';
import './collapse_form.css';

// Angles stand in the address in whole degrees.
export const radians = (angle: number): number => (angle * Math.PI) / 180;
export const degrees = (angle: number): string => (((angle * 180) / Math.PI) % 360).toFixed(0);

// What stands in the address was written by anyone.
export function numberOf(text: string, fallback: number, low = -Infinity, high = Infinity): number {
  const value = text.trim() === '' ? NaN : Number(text);
  return Number.isFinite(value) ? Math.min(high, Math.max(low, value)) : fallback;
}

export function layout(root: HTMLElement, id: string, title: string, words: string) {
  const controls = html('form', { class: 'depth-controls', 'aria-label': 'Settings' });
  controls.addEventListener('submit', event => event.preventDefault());
  const summary = html('p', { class: 'depth-summary', 'aria-live': 'polite', 'data-testid': `${id}-summary` });
  const figures = html('div', { class: 'depth-figures' });
  const numbers = html('table', { class: 'depth-numbers', 'aria-label': 'Numbers' });
  const side = html('div', { class: 'depth-main' }, summary, figures, numbers);
  root.replaceChildren(
    html(
      'div',
      { class: 'depth', 'data-testid': `${id}-view` },
      html('h2', {}, title),
      html('p', { class: 'depth-words' }, words),
      html('div', { class: 'depth-columns' }, controls, side),
    ),
  );
  return { controls, figures, summary, numbers };
}

export interface Field<Value> {
  element: HTMLElement;
  set(value: Value): void;
  error(sentence: string | null): void;
}

function withError(id: string, label: string, inputs: HTMLElement[], hint?: string) {
  const problem = html('p', { class: 'depth-error', id: `${id}-error`, role: 'alert', 'data-testid': `${id}-error` });
  problem.hidden = true;
  const box = html(
    'div',
    { class: 'depth-field' },
    html('label', { for: id }, label, ...(hint ? [html('small', {}, ` ${hint}`)] : [])),
    html(
      'div',
      {
        class:
          inputs.length > 1 && inputs.some(input => input.tagName === 'SELECT')
            ? 'depth-inputs depth-stacked'
            : 'depth-inputs',
      },
      ...inputs,
    ),
    problem,
  );
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
  const positions = 1000,
    ratio = Math.log(spec.max / spec.min);
  const range = html(
    'input',
    spec.logarithmic
      ? { id: spec.id, type: 'range', min: '0', max: String(positions), step: '1', 'data-testid': spec.id }
      : {
          id: spec.id,
          type: 'range',
          min: String(spec.min),
          max: String(spec.max),
          step: String(spec.step),
          'data-testid': spec.id,
        },
  );
  const number = html('input', {
    type: 'number',
    step: 'any',
    'aria-label': `${spec.label}, as a number`,
    'data-testid': `${spec.id}-number`,
  });
  const { element: box, error } = withError(
    spec.id,
    spec.label + (spec.unit ? ` (${spec.unit})` : ''),
    [range, number],
    spec.hint,
  );
  const show = (value: number): void => {
    const inside = Math.min(spec.max, Math.max(spec.min, Number.isFinite(value) ? value : spec.min));
    range.value = String(spec.logarithmic ? Math.round((positions * Math.log(inside / spec.min)) / ratio) : inside);
    range.setAttribute('aria-valuetext', `${value}${spec.unit ?? ''}`);
  };
  range.addEventListener('input', () => {
    const value = spec.logarithmic
      ? spec.min * Math.exp((ratio * Number(range.value)) / positions)
      : Number(range.value);
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
  const select = html(
    'select',
    { id: spec.id, 'data-testid': spec.id },
    ...spec.options.map(([value, words]) => html('option', { value }, words)),
  );
  const { element: box, error } = withError(spec.id, spec.label, [select]);
  select.addEventListener('change', () => spec.onInput(select.value));
  const set = (value: string): void => {
    // A value from the address that the list does not have is shown as it is, and the core judges it.
    if (![...select.options].some(option => option.value === value)) select.append(html('option', { value }, value));
    select.value = value;
  };
  set(spec.value);
  return { element: box, set, error };
}

// Free text with examples to choose from.
export function textWithExamples(spec: ChoiceSpec): Field<string> {
  const text = html('input', {
    id: spec.id,
    type: 'text',
    spellcheck: 'false',
    autocomplete: 'off',
    placeholder: spec.value,
    'data-testid': spec.id,
  });
  const examples = html(
    'select',
    { 'aria-label': `${spec.label}: examples`, 'data-testid': `${spec.id}-examples` },
    html('option', { value: '' }, 'examples …'),
    ...spec.options.map(([value, words]) => html('option', { value }, words)),
  );
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
  const made = html('button', { type: 'button', 'data-testid': testid }, words);
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
  let max = spec.max,
    value = spec.value,
    timer: ReturnType<typeof setInterval> | undefined;
  const range = html('input', { type: 'range', min: '0', step: '1', id: spec.id, 'data-testid': spec.id });
  const output = html('output', { for: spec.id, 'data-testid': `${spec.id}-value` });
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
  const back = button('−1', step(-1), `${spec.id}-back`),
    forth = button('+1', step(1), `${spec.id}-forth`);
  back.setAttribute('aria-label', 'One layer back');
  forth.setAttribute('aria-label', 'One layer on');
  range.addEventListener('input', () => {
    stop();
    move(Number(range.value));
  });
  range.addEventListener('change', spec.onStop);
  show();
  return {
    element: html(
      'div',
      { class: 'depth-player' },
      toggle,
      back,
      forth,
      html('label', { for: spec.id }, spec.label),
      range,
      output,
    ),
    set(to: number, most = max): void {
      max = most;
      value = Math.min(max, Math.max(0, to));
      show();
    },
    play,
    stop,
  };
}

export function figure(spec: { id: string; name: string; title: string; csv: () => string }) {
  const body = html('div', { class: 'depth-figure-body', 'data-testid': spec.id });
  const foot = html('div', { class: 'depth-figure-foot' });
  const heading = html('span', {}, spec.title);
  const saveSvg = button(
    'SVG',
    () => {
      const drawn = body.querySelector('svg');
      if (drawn) downloadSvg(`${spec.name}.svg`, drawn);
    },
    `${spec.id}-svg`,
  );
  const saveCsv = button('CSV', () => download(`${spec.name}.csv`, 'text/csv', spec.csv()), `${spec.id}-csv`);
  saveSvg.setAttribute('aria-label', `Save “${spec.title}” as SVG`);
  saveCsv.setAttribute('aria-label', `Save the numbers of “${spec.title}” as CSV`);
  return {
    element: html(
      'figure',
      { class: 'depth-figure' },
      html('figcaption', {}, heading, html('span', { class: 'depth-saves' }, saveSvg, saveCsv)),
      body,
      foot,
    ),
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
export interface Cell {
  words: string;
  testid: string;
  value: number | string;
}
export function numbersGrid(table: HTMLTableElement, header: string[], rows: [string, ...Cell[]][]): void {
  table.replaceChildren(
    html('thead', {}, html('tr', {}, html('td'), ...header.map(words => html('th', { scope: 'col' }, words)))),
    html(
      'tbody',
      {},
      ...rows.map(([label, ...cells]) =>
        html(
          'tr',
          {},
          html('th', { scope: 'row' }, label),
          ...cells.map(cell =>
            html('td', { 'data-testid': cell.testid, 'data-value': String(cell.value) }, cell.words),
          ),
        ),
      ),
    ),
  );
}

// label, words, test id, the value unrounded
export function numbersTable(table: HTMLTableElement, rows: [string, string, string, number | string][]): void {
  const known = table.rows.length === rows.length;
  if (!known) table.replaceChildren(...rows.map(() => html('tr', {}, html('th', { scope: 'row' }), html('td'))));
  rows.forEach(([label, words, testid, value], i) => {
    const row = table.rows[i]!,
      cell = row.cells[1]!;
    row.cells[0]!.textContent = label;
    cell.textContent = words;
    cell.dataset.testid = testid;
    cell.dataset.value = String(value);
  });
}
