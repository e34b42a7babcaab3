// One figure: its panels, legend, tools and data.
import { parseCsv } from '../src/kit/csv';
import { download } from '../src/kit/download';
import { html, svg } from '../src/kit/elements';
import { listenLegend } from '../src/kit/legend';
import { startCells } from './cells';
import { hideHint, hintOf, showHint } from './hint';
import type { Part, Table } from './parts';
import { curvesOf, Plot } from './plot';
import { Scene } from './scene';
import { Sheet } from './sheet';

function startLegend(figure: HTMLElement): void {
  const entries = [...figure.querySelectorAll<HTMLElement | SVGElement>('.entry')];
  if (!entries.length) return;
  const classes = entries.map(entry => entry.dataset.toggleClass).filter(name => name !== undefined);
  const selector = ['[data-name]', ...classes.map(name => `.${CSS.escape(name)}`)].join(',');
  const targets = [...figure.querySelectorAll<HTMLElement | SVGElement>(selector)].filter(
    target => !target.closest('.entry'),
  );
  listenLegend(entries, hidden => {
    const names = new Set<string | undefined>(),
      hiddenClasses: string[] = [];
    for (const { dataset } of hidden) {
      if (dataset.toggleClass) hiddenClasses.push(dataset.toggleClass);
      else names.add(dataset.toggle);
    }
    for (const target of targets) {
      const off = names.has(target.dataset.name) || hiddenClasses.some(name => target.classList.contains(name));
      if (!(target instanceof SVGElement)) target.classList.toggle('off', off);
      else if (off) target.setAttribute('display', 'none');
      else target.removeAttribute('display');
    }
  });
}

// The picture as it is seen, for a file of its own.
function standalone(drawing: SVGSVGElement): string {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  for (const element of copy.querySelectorAll('.cross, .selection, .cursor, .frame')) element.remove();
  for (const element of [copy, ...copy.querySelectorAll<SVGElement>('*')]) {
    for (const name of ['tabindex', 'role', 'aria-label', 'aria-labelledby', 'aria-pressed', 'style'])
      element.removeAttribute(name);
    if (!element.dataset.hint) continue;
    element.append(svg('title', {}, element.dataset.hint));
    delete element.dataset.hint;
  }
  return new XMLSerializer().serializeToString(copy);
}

function dataTable({ header, rows }: Table): HTMLElement {
  const most = 500,
    longest = 200;
  const words = (field: string): string =>
    field.length > longest ? `${field.slice(0, longest)}… (${field.length} characters)` : field;
  const lines = rows.slice(0, most).map(row => html('tr', {}, ...row.map(field => html('td', {}, words(field)))));
  return html(
    'div',
    { class: 'data-table', tabindex: '0', role: 'region', 'aria-label': 'Data of the figure as a table' },
    html(
      'table',
      {},
      html('tbody', {}, html('tr', {}, ...header.map(field => html('th', { scope: 'col' }, words(field)))), ...lines),
    ),
    rows.length > most
      ? html('p', { class: 'note' }, `The first ${most} of ${rows.length} rows; the CSV has all.`)
      : null,
  );
}

// What is drawn, and what of it zooms.
function startDrawing(drawing: SVGSVGElement, table: () => Table | null): Part[] {
  // Hints are <title> elements in the file, so that they also work without a script; here they are shown at once.
  for (const title of drawing.querySelectorAll('* > title')) {
    (title.parentNode as SVGElement).dataset.hint = title.textContent!;
    title.remove();
  }
  drawing.setAttribute('role', 'group');
  const panels = [...drawing.querySelectorAll<SVGGElement>('.panel[data-kind="xy"]')];
  const told =
    panels.length > 0 && new Set(panels.map(panel => panel.dataset.title)).size === panels.length ? table() : null;
  const curves = told && curvesOf([told.header, ...told.rows]);
  const plots = curves
    ? panels.map(panel => new Plot(panel, drawing, curves.get(panel.dataset.title!) ?? new Map()))
    : [];
  const scenes = [...drawing.querySelectorAll<SVGGElement>('.panel[data-kind="3d"]')].map(panel => new Scene(panel));
  for (const group of drawing.querySelectorAll<SVGGElement>('.cells, .matrix')) startCells(group, drawing, table);
  drawing.addEventListener('pointermove', event => {
    const target = event.target as Element;
    if (target.closest('[data-kind="xy"]') && plots.length) return;
    if (target.closest('.matrix, [data-where]')) return;
    if (!event.buttons) showHint(hintOf(target), event.clientX, event.clientY);
  });
  drawing.addEventListener('pointerleave', hideHint);
  return [...(plots.length ? plots : [new Sheet(drawing, !scenes.length)]), ...scenes];
}

export function startFigure(figure: HTMLElement): void {
  if (figure.dataset.ready) return;
  figure.dataset.ready = '1';
  const drawing = figure.querySelector<SVGSVGElement>('.wide > svg'),
    tools = figure.querySelector<HTMLElement>('.tools')!;
  const data = figure.querySelector('script[type="application/json"]');
  const csv = (): string => (data ? JSON.parse(data.textContent!) : '');
  let read: Table | null | undefined;
  const table = (): Table | null => {
    if (read !== undefined) return read;
    const [header, ...rows] = parseCsv(csv());
    return (read = header ? { header, rows } : null);
  };
  for (const element of figure.querySelectorAll<HTMLElement>('.text [title]')) {
    element.dataset.hint = element.title;
    element.removeAttribute('title');
  }
  const text = figure.querySelector<HTMLElement>('.text');
  text?.addEventListener('pointermove', event => showHint(hintOf(event.target), event.clientX, event.clientY));
  text?.addEventListener('pointerleave', hideHint);
  const parts = drawing ? startDrawing(drawing, table) : [];
  startLegend(figure);

  // The zoom comes first among the tools, which are in the file.
  const button = (words: string, act: (part: Part) => void): HTMLButtonElement => {
    const made = html('button', { type: 'button' }, words);
    made.addEventListener('click', () => parts.forEach(act));
    return made;
  };
  if (parts.length) {
    tools.prepend(
      button('Zoom in', part => part.zoom?.(1.5)),
      button('Zoom out', part => part.zoom?.(1 / 1.5)),
      button('Reset view', part => part.reset()),
    );
  }
  const toggle = tools.querySelector('[data-kind="table"]');
  toggle?.addEventListener('click', () => {
    const open = toggle.getAttribute('aria-expanded') === 'true',
      shown = table();
    toggle.setAttribute('aria-expanded', String(!open));
    if (open) figure.querySelector('.data-table')?.remove();
    else if (shown) tools.after(dataTable(shown));
  });
  tools
    .querySelector('[data-kind="svg"]')
    ?.addEventListener('click', () => download(`${figure.id}.svg`, 'image/svg+xml', standalone(drawing!)));
  tools
    .querySelector('[data-kind="csv"]')
    ?.addEventListener('click', () => download(`${figure.id}.csv`, 'text/csv', csv()));
}
