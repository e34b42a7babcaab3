// What figures share with each other: attributes that hold numbers, keys, the table behind a figure.
export interface Table {
  header: string[];
  rows: string[][];
}

// A part of a figure that the buttons below it move.
export interface Part {
  zoom?(factor: number): void;
  reset(): void;
}

export const numbers = (text: string | undefined | null): number[] => (text ?? '').split(' ').map(Number);

export function set(element: Element, attributes: Record<string, string | number>): void {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
}

// With these a key belongs to the browser.
export const commanded = (event: KeyboardEvent): boolean => event.ctrlKey || event.altKey || event.metaKey;
