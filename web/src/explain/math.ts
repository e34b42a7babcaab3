// Formulas in MathML. A term that speaks of a key has its colour and lights up with it.
import { scrolling } from '../kit/elements';

type Child = Node | string | number;
const space = 'http://www.w3.org/1998/Math/MathML';

export function m(name: string, attributes: Record<string, string>, ...children: Child[]): MathMLElement {
  const element = document.createElementNS(space, name) as MathMLElement;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.map(child => (typeof child === 'number' ? written(child) : child)));
  return element;
}
const row = (...children: Child[]): MathMLElement => m('mrow', {}, ...children);

// Two decimals, as in every formula of the page; the minus is a minus.
export const written = (value: number): string =>
  value
    .toFixed(2)
    .replace(/^-(?=0\.00$)/, '')
    .replace('-', '−');

export const identifier = (name: string): MathMLElement => m('mi', {}, name);
export const bold = (name: string): MathMLElement => m('mi', { class: 'vector' }, name);
export const operator = (sign: string): MathMLElement => m('mo', {}, sign);
export const number = (value: number | string): MathMLElement =>
  m('mn', {}, typeof value === 'number' ? written(value) : value);
export const words = (text: string): MathMLElement => m('mtext', {}, text);
export const sub = (base: Node, index: string): MathMLElement =>
  m('msub', {}, base, m(Number(index) > 0 ? 'mn' : 'mi', {}, index));
export const power = (base: Node, exponent: Node): MathMLElement => m('msup', {}, base, exponent);
export const over = (top: Node, bottom: Node): MathMLElement => m('mfrac', {}, top, bottom);
export const root = (of: Node): MathMLElement => m('msqrt', {}, of);
export const fenced = (open: string, inside: Node, close: string): MathMLElement =>
  row(
    m('mo', { fence: 'true', stretchy: 'false' }, open),
    inside,
    m('mo', { fence: 'true', stretchy: 'false' }, close),
  );
export const norm = (inside: Node): MathMLElement => fenced('‖', inside, '‖');
export { row };

// Something said of one key.
export const ofKey = (key: number, ...children: Child[]): MathMLElement =>
  m('mrow', { class: `of-key key-${key + 1}`, 'data-key': String(key + 1) }, ...children);
// k₂
export const keySymbol = (key: number): MathMLElement => ofKey(key, sub(bold('k'), String(key + 1)));
// q·k₂
export const scoreSymbol = (key: number): MathMLElement => row(bold('q'), operator('·'), keySymbol(key));

// A vector as a column, in the colour of its key.
export const column = (key: number, values: readonly number[]): MathMLElement =>
  ofKey(
    key,
    m('mo', { fence: 'true' }, '('),
    m('mtable', {}, ...values.map(value => m('mtr', {}, m('mtd', {}, number(value))))),
    m('mo', { fence: 'true' }, ')'),
  );

// One formula on a line of its own; `spoken` is what it says, for those who do not see it.
export function formula(spoken: string, ...children: Child[]): HTMLElement {
  const element = document.createElement('div');
  element.className = 'formula';
  element.append(m('math', { display: 'block', 'aria-label': spoken }, ...children));
  return scrolling(element);
}
export function inline(...children: Child[]): MathMLElement {
  return m('math', {}, ...children);
}

// a + b + c
export function sum(terms: Node[]): MathMLElement[] {
  return terms.flatMap((term, i) => (i === 0 ? [term as MathMLElement] : [operator('+'), term as MathMLElement]));
}
