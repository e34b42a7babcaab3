// What the views of depth and training are laid out in: controls beside figures with downloads, and a table of numbers.
import { button } from './controls';
import { download, downloadSvg } from './download';
import { html } from './elements';
import './panel.css';

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

export function figure(spec: { id: string; name: string; title: string; csv: () => string }) {
  const body = html('div', { class: 'depth-figure-body', 'data-testid': spec.id });
  const foot = html('div', { class: 'depth-figure-foot' });
  const heading = html('span', {}, spec.title);
  const saveSvg = button(
    `${spec.id}-svg`,
    'SVG',
    () => {
      const drawn = body.querySelector('svg');
      if (drawn) downloadSvg(`${spec.name}.svg`, drawn);
    },
    `Save “${spec.title}” as SVG`,
  );
  const saveCsv = button(
    `${spec.id}-csv`,
    'CSV',
    () => download(`${spec.name}.csv`, 'text/csv', spec.csv()),
    `Save the numbers of “${spec.title}” as CSV`,
  );
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
