// Controls with their labels, and a place for what the core says against their value. Each shows another value without
// telling its listener.
import { html } from './elements';
import './controls.css';

export interface Control<Value> {
  element: HTMLElement;
  show(value: Value): void;
  error(sentence: string | null): void; // null: nothing is wrong
}

export type Options = [value: string, words: string][];

const optionsOf = (options: Options): HTMLOptionElement[] =>
  options.map(([value, words]) => html('option', { value }, words));

// A label, what stands beside it, and below both the inputs, in a row or one above the other.
function labelled(id: string, head: (Node | string)[], inputs: HTMLElement[], { stacked = false } = {}) {
  const problem = html('p', { class: 'control-error', id: `${id}-error`, role: 'alert', 'data-testid': `${id}-error` });
  problem.hidden = true;
  const row = html('div', { class: stacked ? 'control-inputs control-stacked' : 'control-inputs' }, ...inputs);
  return {
    element: html('div', { class: 'control' }, html('div', { class: 'control-head' }, ...head), row, problem),
    error(sentence: string | null): void {
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
    },
  };
}

interface SliderSpec {
  id: string;
  label: string;
  hint?: string;
  unit?: string;
  min: number;
  max: number;
  step: number;
  logarithmic?: boolean;
  format?: (value: number) => string;
  onInput: (value: number) => void;
}

// With a format, the number stands beside the label in these words. Without one it stands beside the slider, can be typed
// and may leave the slider's range: the core says what can be.
export function slider(
  spec: SliderSpec,
): Control<number> & { setLabel(label: string): void; setMax(max: number): void } {
  const { id, min, format, unit = '' } = spec;
  const positions = 1000,
    ratio = Math.log(spec.max / min);
  let { max } = spec;
  const ends = spec.logarithmic ? { min: 0, max: positions, step: 1 } : { min, max, step: spec.step };
  const range = html('input', { type: 'range', id, ...ends, 'data-testid': id });
  const output = html('output', { for: id, 'data-testid': `${id}-value` });
  const number = html('input', { type: 'number', step: 'any', 'data-testid': `${id}-number` });
  number.setAttribute('aria-label', `${spec.label}, as a number`);
  const label = html('label', { for: id }, spec.label + (unit && ` (${unit})`));
  if (spec.hint) label.append(html('small', {}, ` ${spec.hint}`));
  const { element, error } = labelled(id, format ? [label, output] : [label], format ? [range] : [range, number]);

  const tell = (value: number): void => {
    const words = format?.(value) ?? `${value}${unit}`;
    if (format) output.textContent = words;
    range.setAttribute('aria-valuetext', words);
  };
  range.addEventListener('input', () => {
    const place = Number(range.value);
    const value = spec.logarithmic ? Number((min * Math.exp((ratio * place) / positions)).toPrecision(3)) : place;
    number.value = String(value);
    tell(value);
    spec.onInput(value);
  });
  number.addEventListener('input', () => number.value !== '' && spec.onInput(Number(number.value)));
  return {
    element,
    error,
    show(value) {
      const inside = Math.min(max, Math.max(min, Number.isFinite(value) ? value : min));
      range.value = String(spec.logarithmic ? Math.round((positions * Math.log(inside / min)) / ratio) : inside);
      if (document.activeElement !== number) number.value = String(value); // never under the hands of who is typing
      tell(value);
    },
    setLabel: text => (label.textContent = text),
    setMax(most) {
      max = most;
      range.max = String(most);
    },
  };
}

export function toggle(id: string, label: string, onInput: (on: boolean) => void) {
  const input = html('input', { type: 'checkbox', role: 'switch', id, 'data-testid': id });
  input.addEventListener('change', () => onInput(input.checked));
  return {
    element: html('label', { class: 'switch' }, input, html('span', {}, label)),
    show: (on: boolean) => (input.checked = on),
  };
}

export function select(id: string, label: string, options: Options, onInput: (value: string) => void): Control<string> {
  const input = html('select', { id, 'data-testid': id }, ...optionsOf(options));
  input.addEventListener('change', () => onInput(input.value));
  return {
    ...labelled(id, [html('label', { for: id }, label)], [input]),
    show(value) {
      // A value from the address that the list does not have is shown as it is, and the core judges it.
      if (![...input.options].some(option => option.value === value)) input.append(...optionsOf([[value, value]]));
      input.value = value;
    },
  };
}

// Free text with examples to choose from.
export function textWithExamples(
  id: string,
  label: string,
  examples: Options,
  placeholder: string,
  onInput: (value: string) => void,
): Control<string> {
  const text = html('input', { id, type: 'text', spellcheck: 'false', autocomplete: 'off', placeholder });
  text.dataset.testid = id;
  const list = html(
    'select',
    { 'aria-label': `${label}: examples`, 'data-testid': `${id}-examples` },
    ...optionsOf([['', 'examples …'], ...examples]),
  );
  text.addEventListener('input', () => onInput(text.value));
  list.addEventListener('change', () => {
    if (list.value === '') return;
    text.value = list.value;
    onInput(text.value);
  });
  return {
    ...labelled(id, [html('label', { for: id }, label)], [text, list], { stacked: true }),
    show(value) {
      if (document.activeElement !== text) text.value = value;
      list.value = examples.some(([each]) => each === value) ? value : '';
    },
  };
}

// A few exclusive choices side by side.
export function segments(id: string, label: string, options: Options, onInput: (value: string) => void) {
  const inputs = options.map(([value]) =>
    html('input', { type: 'radio', name: id, value, 'data-testid': `${id}-${value}` }),
  );
  for (const input of inputs) input.addEventListener('change', () => input.checked && onInput(input.value));
  const row = html('div', { class: 'segments' }, ...options.map(([, words], i) => html('label', {}, inputs[i], words)));
  return {
    element: html('fieldset', { class: 'control' }, html('legend', {}, label), row),
    show: (value: string) => inputs.forEach(input => (input.checked = input.value === value)),
  };
}

// spoken: what a screen reader says of a button whose label is a sign.
export function button(id: string, label: string, onClick: () => void, spoken?: string): HTMLButtonElement {
  const element = html('button', { type: 'button', id, 'data-testid': id, 'aria-label': spoken }, label);
  element.addEventListener('click', onClick);
  return element;
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
  const toggle = button(`${spec.id}-play`, 'Play', () => (timer === undefined ? play() : stop()));
  const step = (by: number) => (): void => {
    stop();
    move(value + by);
    spec.onStop();
  };
  const back = button(`${spec.id}-back`, '−1', step(-1), 'One layer back'),
    forth = button(`${spec.id}-forth`, '+1', step(1), 'One layer on');
  range.addEventListener('input', () => {
    stop();
    move(Number(range.value));
  });
  range.addEventListener('change', spec.onStop);
  show();
  const label = html('label', { for: spec.id }, spec.label);
  return {
    element: html('div', { class: 'player' }, toggle, back, forth, label, range, output),
    show(to: number, most = max): void {
      max = most;
      value = Math.min(max, Math.max(0, to));
      show();
    },
    play,
    stop,
  };
}
