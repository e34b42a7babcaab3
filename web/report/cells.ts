// Cells of heat maps and masks, told under the pointer and reached by the arrow keys.
import { svg } from '../src/kit/elements';
import { clamp, short } from '../src/kit/numbers';
import { inside } from '../src/kit/zoom';
import { hideHint, hintAt, say, showHint } from './hint';
import { commanded, numbers, type Table } from './parts';

type Text = (row: number, column: number) => string;

const moves: Record<string, [number, number]> = {
  ArrowRight: [0, 1],
  ArrowLeft: [0, -1],
  ArrowDown: [1, 0],
  ArrowUp: [-1, 0],
  Home: [0, -1e9],
  End: [0, 1e9],
  PageUp: [-1e9, 0],
  PageDown: [1e9, 0],
};

// "column=value"
function where(group: SVGGElement): [string, string] {
  const text = group.dataset.where!,
    at = text.indexOf('=');
  return [text.slice(0, at), text.slice(at + 1)];
}

// The row of the table with the x and the y of the cell, column by column.
function cellText(group: SVGGElement, { header, rows }: Table): Text {
  const [key, wanted] = where(group),
    [xName, yName] = group.dataset.axes!.split(' ') as [string, string];
  const xs = group.dataset.xs!.split(' '),
    ys = group.dataset.ys!.split(' ');
  const of = header.indexOf(key),
    x = header.indexOf(xName),
    y = header.indexOf(yName),
    found = new Map<string, string[]>();
  for (const row of rows) if (row[of] === wanted) found.set(`${row[x]} ${row[y]}`, row);
  return (row, column) => {
    const cell = found.get(`${xs[column]} ${ys[row]}`);
    if (!cell) return `${xName} ${xs[column]}, ${yName} ${ys[row]}: n/a`;
    return header
      .map((name, i) => (i === of || cell[i] === '' ? '' : `${name.replace(/_/g, ' ')} ${short(Number(cell[i]))}`))
      .filter(Boolean)
      .join('\n');
  };
}

// A mask of more tokens than cells: a cell stands for a range of them.
function maskText(group: SVGGElement, columns: number, { header, rows }: Table): Text {
  const [key, wanted] = where(group),
    tokens = Number(group.dataset.tokens),
    shares = new Map<number, number>();
  const begin = (cell: number): number => Math.floor((cell * tokens) / columns);
  const cellOf = (token: number): number => Math.floor(((token + 1) * columns - 1) / tokens);
  for (const row of rows) {
    const field = (name: string): string => row[header.indexOf(name)]!;
    if (field(key) !== wanted) continue;
    const line = cellOf(Number(field('first_row'))),
      last = cellOf(Number(field('last_column')));
    for (let c = cellOf(Number(field('first_column'))); c <= last; ++c)
      shares.set(line * columns + c, Number(field('share')));
  }
  const several = (cell: number): boolean => begin(cell + 1) - begin(cell) > 1;
  const range = (cell: number): string =>
    several(cell) ? `tokens ${begin(cell)} to ${begin(cell + 1) - 1}` : `token ${begin(cell)}`;
  return (row, column) => {
    const share = shares.get(row * columns + column) ?? 0;
    if (share === 0) return `${range(row)} ${several(row) ? 'do' : 'does'} not attend to ${range(column)}`;
    return (
      `${range(row)} ${several(row) ? 'attend' : 'attends'} to ${range(column)}` +
      (share < 1 ? `: ${short(100 * share)} % of the pairs` : '')
    );
  };
}

export function startCells(group: SVGGElement, drawing: SVGSVGElement, table: () => Table | null): void {
  const columns = Number(group.dataset.columns),
    [left, top, right, bottom] = numbers(group.dataset.frame) as [number, number, number, number];
  const rects = [...group.querySelectorAll('rect')],
    told = rects.length > 0 && rects.every(rect => rect.dataset.hint);
  if (!columns || (!told && (!group.dataset.where || !table()))) return;
  const rows = group.dataset.ys ? numbers(group.dataset.ys).length : told ? Math.ceil(rects.length / columns) : columns;
  const text: Text = told
    ? (at, column) => rects[at * columns + column]?.dataset.hint ?? ''
    : group.dataset.tokens
      ? maskText(group, columns, table()!)
      : cellText(group, table()!);
  let row = 0,
    column = 0;
  const cursor = svg('rect', { class: 'cursor', width: 1, height: 1, display: 'none' });
  group.append(cursor);
  // Without cells of its own to point at, one sheet over all takes the pointer.
  const sheet = told ? null : svg('rect', { width: columns, height: rows, fill: 'none', 'pointer-events': 'all' });
  if (sheet) group.append(sheet);

  // What has the focus: the cell itself, or the sheet over all.
  const target = (): SVGRectElement => sheet ?? rects[row * columns + column]!;
  const label = (): void => {
    const { title } = group.dataset;
    target().setAttribute('role', 'img');
    target().setAttribute('aria-label', (title ? `${title}, ` : '') + text(row, column).replace(/\n/g, ', '));
  };
  const tell = (): void => {
    cursor.setAttribute('x', String(column));
    cursor.setAttribute('y', String(row));
    cursor.removeAttribute('display');
    hintAt(
      drawing,
      text(row, column),
      left + ((column + 1) / columns) * (right - left),
      top + ((row + 1) / rows) * (bottom - top),
    );
  };
  target().setAttribute('tabindex', '0');
  label();
  if (sheet) {
    group.addEventListener('pointermove', event => {
      const at = inside(drawing, event);
      showHint(
        text(
          clamp(Math.floor(((at.y - top) / (bottom - top)) * rows), 0, rows - 1),
          clamp(Math.floor(((at.x - left) / (right - left)) * columns), 0, columns - 1),
        ),
        event.clientX,
        event.clientY,
      );
    });
    group.addEventListener('pointerleave', hideHint);
  }
  group.addEventListener('focusin', () => {
    if (target().matches(':focus-visible')) tell();
  });
  group.addEventListener('focusout', () => {
    hideHint();
    cursor.setAttribute('display', 'none');
  });
  group.addEventListener('keydown', event => {
    const move = moves[event.key];
    if (!move || commanded(event)) return;
    event.preventDefault();
    const old = target();
    row = clamp(row + move[0], 0, rows - 1);
    column = clamp(column + move[1], 0, columns - 1);
    if (target() !== old) old.setAttribute('tabindex', '-1');
    target().setAttribute('tabindex', '0');
    label();
    target().focus({ preventScroll: true });
    tell();
    if (sheet) say(text(row, column)); // the focus did not move, so nobody reads the label
  });
}
