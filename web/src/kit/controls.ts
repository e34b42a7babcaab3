// Controls with their labels. Each returns its element and a way to show another value without telling the listener.
import { html } from './elements';

export interface Control<Value> {
  element: HTMLElement;
  show(value: Value): void;
}

interface SliderSpec {
  id: string;
  label: string;
  min: number;
  max: number;
  step: number;
  format?: (value: number) => string;
  onInput: (value: number) => void;
}

export function slider(
  spec: SliderSpec,
): Control<number> & { setLabel(label: string): void; setMax(max: number): void } {
  const format = spec.format ?? (value => String(+value.toFixed(3)));
  const input = html('input', {
    type: 'range',
    id: spec.id,
    min: String(spec.min),
    max: String(spec.max),
    step: String(spec.step),
    'data-testid': spec.id,
  });
  const output = html('output', { for: spec.id, 'data-testid': `${spec.id}-value` });
  const label = html('label', { for: spec.id }, spec.label);
  const tell = (value: number) => {
    output.textContent = format(value);
    input.setAttribute('aria-valuetext', format(value));
  };
  input.addEventListener('input', () => {
    tell(Number(input.value));
    spec.onInput(Number(input.value));
  });
  return {
    element: html('div', { class: 'control' }, html('div', { class: 'control-head' }, label, output), input),
    show(value) {
      input.value = String(value);
      tell(value);
    },
    setLabel: text => (label.textContent = text),
    setMax: max => (input.max = String(max)),
  };
}

export function toggle(id: string, label: string, onInput: (on: boolean) => void): Control<boolean> {
  const input = html('input', { type: 'checkbox', role: 'switch', id, 'data-testid': id });
  input.addEventListener('change', () => onInput(input.checked));
  return {
    element: html('label', { class: 'switch' }, input, html('span', {}, label)),
    show: on => (input.checked = on),
  };
}

export function select(
  id: string,
  label: string,
  options: [value: string, words: string][],
  onInput: (value: string) => void,
): Control<string> {
  const input = html(
    'select',
    { id, 'data-testid': id },
    ...options.map(([value, words]) => html('option', { value }, words)),
  );
  input.addEventListener('change', () => onInput(input.value));
  return {
    element: html('div', { class: 'control' }, html('label', { for: id }, label), input),
    show: value => (input.value = value),
  };
}

// A few exclusive choices side by side.
export function segments(
  id: string,
  label: string,
  options: [value: string, words: string][],
  onInput: (value: string) => void,
): Control<string> {
  const inputs = options.map(([value]) =>
    html('input', { type: 'radio', name: id, value, 'data-testid': `${id}-${value}` }),
  );
  for (const input of inputs) input.addEventListener('change', () => input.checked && onInput(input.value));
  const row = html('div', { class: 'segments' }, ...options.map(([, words], i) => html('label', {}, inputs[i], words)));
  return {
    element: html('fieldset', { class: 'control' }, html('legend', {}, label), row),
    show: value => inputs.forEach(input => (input.checked = input.value === value)),
  };
}

export function button(id: string, label: string, onClick: () => void): HTMLButtonElement {
  const element = html('button', { type: 'button', id, 'data-testid': id }, label);
  element.addEventListener('click', onClick);
  return element;
}
