// SVG and HTML elements. Text enters as text nodes only, so a label from an address or a file cannot become markup.
type Attributes = Record<string, string | number | boolean | null | undefined>;
type Child = Node | string | null | undefined;

function fill<T extends Element>(element: T, attributes: Attributes, children: Child[]): T {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? '' : typeof value === 'number' ? String(+value.toFixed(3)) : value);
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined));
  return element;
}

export function svg<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[Name] {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
}

export function html<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  return fill(document.createElement(name), attributes, children);
}

// A box whose contents may be wider than it: while they are, it takes the focus, so that a keyboard can scroll it.
export function scrolling(box: HTMLElement): HTMLElement {
  new ResizeObserver(() => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute('tabindex');
  }).observe(box);
  return box;
}

// The path of an arc around (x, y), directions in radians against the clock, y of the screen pointing down.
export function arcPath(x: number, y: number, inner: number, outer: number, from: number, to: number): string {
  // A full circle needs two arcs: one alone would start where it ends.
  if (to - from >= 2 * Math.PI - 1e-9) {
    const middle = (from + to) / 2;
    return arcPath(x, y, inner, outer, from, middle) + arcPath(x, y, inner, outer, middle, to - 1e-9);
  }
  const at = (radius: number, angle: number) =>
    `${(x + radius * Math.cos(angle)).toFixed(2)} ${(y - radius * Math.sin(angle)).toFixed(2)}`;
  const large = to - from > Math.PI ? 1 : 0;
  return (
    `M${at(outer, from)}A${outer} ${outer} 0 ${large} 0 ${at(outer, to)}` +
    `L${at(inner, to)}A${inner} ${inner} 0 ${large} 1 ${at(inner, from)}Z`
  );
}
