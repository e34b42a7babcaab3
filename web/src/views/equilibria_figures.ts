// The two pictures of the equilibria view: token 2's circle with basins, points and one trajectory; and the fates of
// all starts by the angles of both tokens.
import { svg } from '../kit/elements';
import { emptyFigure } from './collapse_chart';
import { legendPlaces } from '../kit/legend';
import { palette } from '../kit/palette';

export interface Point {
  name: string;
  kind: string;
  x: number;
  y: number;
  degrees: number;
  multiplier: number;
}
export interface Portrait {
  side: number; // token 1 stands at (0, side)
  points: Point[]; // A, B, C, S
  arrows: { degrees: Float64Array; turns: Float64Array };
  arc: {
    angles: number;
    apart: number;
    share: number;
    formula: number;
    mismatches: number;
    zeroRows: number;
    unsettled: number;
  };
}
export interface Path {
  steps: Float64Array;
  zeroRows: number;
  fate: string;
} // x1, y1, x2, y2 per layer

const letters = 13.5;
const size = 460,
  middle = size / 2,
  radius = 158,
  arrowRadius = radius + 15,
  labelRadius = radius + 34;
// As in the reports (phase_order() of src/report/equilibria_page.cc): apart, collapse, token 1.
const apartColour = palette.blue,
  collapsedColour = palette.vermillion;
const tokenColours = [palette.green, palette.purple];

const at = (degrees: number, r: number): [number, number] => [
  middle + r * Math.cos((degrees * Math.PI) / 180),
  middle - r * Math.sin((degrees * Math.PI) / 180),
];
const fixed = (value: number): string => value.toFixed(1);

// Counter-clockwise, in two pieces: an SVG arc over half a circle and more is ambiguous.
function arcPath(from: number, to: number, r: number): string {
  const [x, y] = at(from, r);
  const turn = to > from ? 0 : 1;
  return (
    `M${fixed(x)} ${fixed(y)}` +
    [(from + to) / 2, to]
      .map(end => {
        const [ex, ey] = at(end, r);
        return `A${r} ${r} 0 ${Math.abs(to - from) > 360 ? 1 : 0} ${turn} ${fixed(ex)} ${fixed(ey)}`;
      })
      .join('')
  );
}

function mark(point: Point): SVGElement {
  const [x, y] = at(point.degrees, radius);
  const words = `${point.name} (${point.x.toFixed(4)}, ${point.y.toFixed(4)})`;
  const group = svg('g', { 'data-point': point.name });
  if (point.name === 'A') {
    group.append(
      svg('path', { d: `M${fixed(x)} ${fixed(y - 8)}l8 8l-8 8l-8 -8Z`, stroke: 'var(--ground)', 'stroke-width': 1.5 }),
    );
  } else if (point.name === 'S') {
    group.append(
      svg('circle', {
        cx: fixed(x),
        cy: fixed(y),
        r: 7,
        fill: 'var(--ground)',
        stroke: 'currentColor',
        'stroke-width': 2,
      }),
    );
  } else {
    group.append(svg('circle', { cx: fixed(x), cy: fixed(y), r: 7, stroke: 'var(--ground)', 'stroke-width': 1.5 }));
  }
  const [lx, ly] = at(point.degrees, labelRadius);
  // A and B come near C and S as w grows; their words then stand aside.
  const across = point.x,
    aside = point.name === 'A' || point.name === 'B' ? Math.sign(across) * Math.max(0, 46 - 110 * Math.abs(across)) : 0;
  const does = { A: 'A repels', B: 'B attracts', C: 'C attracts', S: 'S zero row' }[point.name] ?? point.name;
  group.append(
    svg(
      'text',
      {
        x: fixed(lx + aside),
        y: fixed(ly + 4),
        'font-weight': 600,
        'text-anchor': point.name === 'C' || point.name === 'S' ? 'middle' : across > 0 ? 'start' : 'end',
      },
      does,
    ),
    svg('title', {}, words),
  );
  return group;
}

// A trajectory goes inwards layer by layer, so that steps at one angle are seen beside each other.
function inwards(step: number): number {
  return radius * (0.93 - (0.62 * step) / (step + 8));
}

function token(path: Path, which: number, steps: number): SVGElement {
  const colour = tokenColours[which]!;
  const group = svg('g', { 'data-token': which + 1 });
  let line = '',
    angle = 0,
    known = false;
  const dots: SVGElement[] = [];
  for (let layer = 0; layer <= steps; ++layer) {
    const x = path.steps[4 * layer + 2 * which]!,
      y = path.steps[4 * layer + 2 * which + 1]!;
    if (x === 0 && y === 0) {
      // a zero row has no angle; a ring stands where it was before
      const [cx, cy] = at(angle, inwards(layer) * 0.55);
      dots.push(svg('circle', { cx: fixed(cx), cy: fixed(cy), r: 6, fill: 'none', stroke: colour, 'stroke-width': 2 }));
      known = false;
      continue;
    }
    const next = (Math.atan2(y, x) * 180) / Math.PI;
    const turn = known ? ((((next - angle) % 360) + 540) % 360) - 180 : 0;
    for (let piece = known ? 1 : 12; piece <= 12; ++piece) {
      const [px, py] = at(known ? angle + (turn * piece) / 12 : next, inwards(known ? layer - 1 + piece / 12 : layer));
      line += `${known || piece < 12 ? 'L' : 'M'}${fixed(px)} ${fixed(py)}`;
    }
    angle = next;
    known = true;
    const [cx, cy] = at(angle, inwards(layer));
    const first = layer === 0,
      last = layer === steps;
    dots.push(
      svg('circle', {
        cx: fixed(cx),
        cy: fixed(cy),
        r: last ? 6 : first ? 4.5 : 2.2,
        fill: first && !last ? 'var(--ground)' : colour,
        stroke: colour,
        'stroke-width': first ? 2 : 0,
      }),
    );
  }
  group.append(
    svg('path', {
      d: line,
      fill: 'none',
      stroke: colour,
      'stroke-width': 1.6,
      'stroke-dasharray': which === 0 ? '4 3' : 'none',
    }),
    ...dots,
    svg('title', {}, `Token ${which + 1}, layers 0 to ${steps}, from the rim inwards`),
  );
  return group;
}

function legend(drawing: SVGElement, entries: [SVGElement, string][], width: number, y: number): void {
  const { places } = legendPlaces(
    entries.map(([, words]) => words),
    width - 4,
    letters,
    { sample: 24, gap: 8, line: 19 },
  );
  entries.forEach(([symbol, words], i) => {
    const place = places[i]!;
    drawing.append(
      svg('g', { transform: `translate(${4 + place.x} ${y + place.y})` }, symbol, svg('text', { x: 24, y: 4 }, words)),
    );
  });
}

const band = (colour: string): SVGElement =>
  svg('path', { d: 'M0 0h18', stroke: colour, 'stroke-width': 9, 'stroke-opacity': 0.7 });
const dot = (fill: string, stroke = 'none'): SVGElement => svg('circle', { cx: 10, cy: 0, r: 5, fill, stroke });
const thread = (which: number): SVGElement =>
  svg('path', {
    d: 'M0 0h18',
    stroke: tokenColours[which]!,
    'stroke-width': 2,
    'stroke-dasharray': which === 0 ? '4 3' : 'none',
  });

export function drawCircle(
  portrait: Portrait,
  path: Path,
  steps: number,
  w: number,
  onPick: (degrees: number) => void,
): SVGSVGElement {
  const drawing = emptyFigure(
    size,
    size + 44,
    `Circle of token 2 beside token 1 at (0, ${portrait.side}), w = ${w}: basins, fixed points, ` +
      `and a trajectory of ${steps} layers`,
    letters,
  );
  const a = portrait.points.find(point => point.name === 'A')!,
    s = portrait.points.find(point => point.name === 'S')!;
  const end = s.degrees > a.degrees ? s.degrees : s.degrees + 360;
  drawing.append(
    svg('path', {
      d: `M${middle - radius} ${middle}H${middle + radius}M${middle} ${middle - radius}V${middle + radius}`,
      stroke: 'currentColor',
      'stroke-opacity': 0.15,
      fill: 'none',
    }),
  );
  for (const [from, to, colour, words] of [
    [a.degrees, end, apartColour, 'from here token 2 goes to B: apart'],
    [end, a.degrees + 360, collapsedColour, 'from here token 2 goes to C: collapsed'],
  ] as const) {
    const arc = svg('path', {
      d: arcPath(from, to, radius),
      fill: 'none',
      stroke: colour,
      'stroke-width': 11,
      'stroke-opacity': 0.7,
    });
    arc.append(svg('title', {}, words));
    drawing.append(arc);
  }
  portrait.arrows.degrees.forEach((degrees, i) => {
    const turn = portrait.arrows.turns[i]!;
    const shown = Math.min(8.5, Math.max(3, Math.abs(turn))),
      way = Math.sign(turn);
    const tip = degrees + (way * shown) / 2;
    const [tx, ty] = at(tip + way * 1, arrowRadius),
      [ix, iy] = at(tip - way * 1.8, arrowRadius - 3.5),
      [ox, oy] = at(tip - way * 1.8, arrowRadius + 3.5);
    drawing.append(
      svg('path', {
        d: arcPath(degrees - (way * shown) / 2, tip, arrowRadius),
        fill: 'none',
        stroke: 'currentColor',
        'stroke-opacity': 0.55,
        'stroke-width': 1.3,
      }),
      svg('path', {
        d: `M${fixed(tx)} ${fixed(ty)}L${fixed(ix)} ${fixed(iy)}L${fixed(ox)} ${fixed(oy)}Z`,
        'fill-opacity': 0.65,
      }),
    );
  });
  drawing.append(token(path, 0, steps), token(path, 1, steps), ...portrait.points.map(mark));
  legend(
    drawing,
    [
      [band(apartColour), 'to B: stay apart'],
      [band(collapsedColour), 'to C: collapse'],
      [thread(0), 'token 1'],
      [thread(1), 'token 2'],
      [dot('currentColor'), `after ${steps} layers; further in is later`],
    ],
    size,
    size + 8,
  );
  drawing.style.cursor = 'crosshair';
  drawing.addEventListener('click', event => {
    const box = drawing.getBoundingClientRect();
    const x = (event.clientX - box.left) * (size / box.width) - middle,
      y = middle - (event.clientY - box.top) * (size / box.width);
    if (Math.hypot(x, y) < radius * 0.2 || Math.hypot(x, y) > radius * 1.35) return;
    onPick(((Math.atan2(y, x) * 180) / Math.PI + 360) % 360);
  });
  return drawing;
}

const mapLeft = 62,
  mapTop = 10,
  mapSide = 380;

export function drawMap(
  map: { fates: Uint8Array; names: string[]; cells: number } | null,
  path: Path,
  steps: number,
  onPick: (degrees1: number, degrees2: number) => void,
): SVGSVGElement {
  const drawing = emptyFigure(
    size,
    size + 44,
    'Fate of the tokens by the angles where they start, both moving',
    letters,
  );
  const colours = [collapsedColour, apartColour, palette.purple, palette.grey];
  const seen = new Set<number>();
  if (map) {
    const side = mapSide / map.cells;
    const paths: string[] = ['', '', '', ''];
    for (let row = 0; row < map.cells; ++row) {
      for (let first = 0, column = 0; column <= map.cells; ++column) {
        const fate = map.fates[row * map.cells + first]!;
        if (column < map.cells && map.fates[row * map.cells + column] === fate) continue;
        seen.add(fate);
        const y = mapTop + mapSide - side * (row + 1);
        paths[fate] +=
          `M${(mapLeft + side * first).toFixed(2)} ${y.toFixed(2)}h${(side * (column - first)).toFixed(2)}v${side.toFixed(2)}H${(mapLeft + side * first).toFixed(2)}Z`;
        first = column;
      }
    }
    const group = svg('g', { 'shape-rendering': 'crispEdges', 'fill-opacity': 0.7 });
    paths.forEach((d, fate) => {
      if (!d) return;
      const cells = svg('path', { d, fill: colours[fate]! });
      cells.append(svg('title', {}, map.names[fate]));
      group.append(cells);
    });
    drawing.append(group);
  } else {
    drawing.append(
      svg('text', { x: mapLeft + mapSide / 2, y: mapTop + mapSide / 2, 'text-anchor': 'middle' }, 'computing …'),
    );
  }
  drawing.append(
    svg('rect', {
      x: mapLeft,
      y: mapTop,
      width: mapSide,
      height: mapSide,
      fill: 'none',
      stroke: 'currentColor',
      'stroke-opacity': 0.5,
    }),
  );
  for (let quarter = 0; quarter <= 4; ++quarter) {
    const along = (mapSide * quarter) / 4;
    drawing.append(
      svg('text', { x: mapLeft + along, y: mapTop + mapSide + 18, 'text-anchor': 'middle' }, `${90 * quarter}°`),
      svg('text', { x: mapLeft - 7, y: mapTop + mapSide - along + 4, 'text-anchor': 'end' }, `${90 * quarter}°`),
    );
  }
  drawing.append(
    svg('text', { x: mapLeft + mapSide / 2, y: mapTop + mapSide + 38, 'text-anchor': 'middle' }, 'token 1 starts at'),
    svg(
      'text',
      { x: 14, y: mapTop + mapSide / 2, 'text-anchor': 'middle', transform: `rotate(-90 14 ${mapTop + mapSide / 2})` },
      'token 2 starts at',
    ),
  );

  // The trajectory in these coordinates: both angles, layer by layer.
  const turned = (x: number, y: number): number => ((Math.atan2(y, x) * 180) / Math.PI + 360) % 360;
  let line = '',
    before: [number, number] | null = null;
  const dots: SVGElement[] = [];
  for (let layer = 0; layer <= steps; ++layer) {
    const [x1, y1, x2, y2] = path.steps.subarray(4 * layer, 4 * layer + 4) as unknown as [
      number,
      number,
      number,
      number,
    ];
    if ((x1 === 0 && y1 === 0) || (x2 === 0 && y2 === 0)) {
      before = null;
      continue;
    }
    const here: [number, number] = [turned(x1, y1), turned(x2, y2)];
    const px = mapLeft + (mapSide * here[0]) / 360,
      py = mapTop + mapSide * (1 - here[1] / 360);
    const wraps = before !== null && (Math.abs(here[0] - before[0]) > 180 || Math.abs(here[1] - before[1]) > 180);
    line += `${before === null || wraps ? 'M' : 'L'}${fixed(px)} ${fixed(py)}`;
    const last = layer === steps;
    dots.push(
      svg('circle', {
        cx: fixed(px),
        cy: fixed(py),
        r: layer === 0 ? 5.5 : last ? 5 : 2.2,
        fill: layer === 0 && !last ? 'white' : 'black',
        stroke: 'black',
        'stroke-width': layer === 0 ? 2 : 0.8,
      }),
    );
    before = here;
  }
  drawing.append(
    svg('path', { d: line, fill: 'none', stroke: 'black', 'stroke-width': 3.4, 'stroke-opacity': 0.55 }),
    svg('path', { d: line, fill: 'none', stroke: 'white', 'stroke-width': 1.4 }),
    ...dots,
  );
  const entries: [SVGElement, string][] = [
    [band(apartColour), 'stay apart'],
    [band(collapsedColour), 'collapse'],
  ];
  if (seen.has(2)) entries.push([band(colours[2]!), 'zero row']);
  if (seen.has(3)) entries.push([band(colours[3]!), 'not settled']);
  entries.push([
    svg('circle', { cx: 10, cy: 0, r: 5, fill: 'white', stroke: 'black', 'stroke-width': 2 }),
    'the start',
  ]);
  entries.push([dot('black', 'currentColor'), 'the end']);
  legend(drawing, entries, size, size + 8);
  drawing.style.cursor = 'crosshair';
  drawing.addEventListener('click', event => {
    const box = drawing.getBoundingClientRect(),
      scale = size / box.width;
    const x = ((event.clientX - box.left) * scale - mapLeft) / mapSide,
      y = 1 - ((event.clientY - box.top) * scale - mapTop) / mapSide;
    if (x >= 0 && x <= 1 && y >= 0 && y <= 1) onPick(360 * x, 360 * y);
  });
  return drawing;
}
