// Legends: entries in lines that fit, each a switch of what it stands for.
import { textWidth } from './text';

// Where entries stand: line by line, as src/report/draw.cc places them.
export function legendPlaces(
  names: readonly string[],
  width: number,
  font: number,
  { sample = 38, gap = 22, line = 21 } = {},
) {
  let x = 0,
    y = 0;
  const places = names.map(name => {
    const room = Math.min(textWidth(name, font), width - sample);
    if (x > 0 && x + sample + room > width) {
      x = 0;
      y += line;
    }
    const place = { x, y, width: sample + room };
    x += sample + room + gap;
    return place;
  });
  return { places, height: names.length > 0 ? y + line : 0 };
}

const pressed = (entry: Element): boolean => entry.getAttribute('aria-pressed') === 'true';

// A click hides and shows; a double click, or Shift and Enter, shows one alone, or, if it is alone already, all again.
export function listenLegend(
  entries: readonly (HTMLElement | SVGElement)[],
  changed: (hidden: (HTMLElement | SVGElement)[]) => void,
): void {
  const apply = (): void => changed(entries.filter(entry => !pressed(entry)));
  const toggle = (entry: Element): void => {
    entry.setAttribute('aria-pressed', String(!pressed(entry)));
    apply();
  };
  const isolate = (entry: Element): void => {
    const alone = entries.every(other => pressed(other) === (other === entry));
    for (const other of entries) other.setAttribute('aria-pressed', String(alone || other === entry));
    apply();
  };
  for (const entry of entries) {
    entry.setAttribute('role', 'button');
    entry.setAttribute('tabindex', '0');
    if (!entry.hasAttribute('aria-pressed')) entry.setAttribute('aria-pressed', 'true');
    entry.setAttribute('aria-label', `${entry.dataset.toggle ?? entry.textContent!.trim()}, shown`);
    entry.addEventListener('click', () => toggle(entry));
    entry.addEventListener('dblclick', event => {
      event.preventDefault();
      isolate(entry);
    });
    entry.addEventListener('keydown', event => {
      const { key, shiftKey } = event as KeyboardEvent;
      if (key !== 'Enter' && key !== ' ') return;
      event.preventDefault();
      if (shiftKey) isolate(entry);
      else toggle(entry);
    });
  }
}
