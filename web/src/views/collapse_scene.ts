// Points, arrows, a sphere and a plane in space, drawn into an SVG that scene3d turns.
import { project, type Camera, type Vector } from '../kit/scene3d';
import { svg } from '../kit/elements';
import { emptyFigure, resize } from './collapse_chart';

export type Place = Vector;

export interface Dot {
  at: Place;
  colour: string;
  label: string;
  radius?: number;
  shape?: 'round' | 'square';
  trail?: Place[]; // where it was before, oldest first
}

export interface SceneOptions {
  title: string;
  size: number; // pixels
  extent: number; // half the width of what is shown
  dots: Dot[];
  sphere?: number; // its radius
  plane?: { normal: Place; radius: number; colour: string };
  axis?: { along: Place; label: string };
  arrows?: { to: Place; colour: string; label: string; dash?: string }[]; // from the origin
  captions?: string[];
  axes?: [string, string, string];
}

function across(normal: Place): [Place, Place] {
  const length = Math.hypot(...normal),
    n = normal.map(value => value / length) as unknown as Place;
  const other: Place = Math.abs(n[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0];
  const cross = (a: Place, b: Place): Place => [
    a[1] * b[2] - a[2] * b[1],
    a[2] * b[0] - a[0] * b[2],
    a[0] * b[1] - a[1] * b[0],
  ];
  const u = cross(n, other),
    ul = Math.hypot(...u),
    first = u.map(value => value / ul) as unknown as Place;
  return [first, cross(n, first)];
}

function ring(normal: Place, radius: number, count = 72): Place[] {
  const [u, v] = across(normal);
  return Array.from({ length: count + 1 }, (_, i) => {
    const c = radius * Math.cos((2 * Math.PI * i) / count),
      s = radius * Math.sin((2 * Math.PI * i) / count);
    return [c * u[0] + s * v[0], c * u[1] + s * v[1], c * u[2] + s * v[2]] as Place;
  });
}

// One figure for all drawings of a scene: it keeps the focus and the pointer while it is turned.
export function sceneFigure(what: string): SVGSVGElement {
  const drawing = emptyFigure(1, 1, what, 13);
  drawing.setAttribute('tabindex', '0');
  drawing.dataset.rotates = '';
  return drawing;
}

export function drawScene(drawing: SVGSVGElement, options: SceneOptions, camera: Camera): void {
  const { size } = options,
    middle = size / 2,
    unit = (size / 2 - 12) / options.extent;
  const captions = options.captions ?? [];
  resize(drawing, size, size + 19 * captions.length, `${options.title}. Drag, or use the arrow keys, to turn it.`);
  const see = (place: Place): Place => project(camera, place);
  const spot = (place: Place): [number, number, number] => {
    const [x, y, depth] = see(place);
    return [middle + unit * x, middle - unit * y, depth];
  };
  const path = (places: Place[]): string =>
    places
      .map((place, i) => {
        const [x, y] = spot(place);
        return `${i === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`;
      })
      .join('');
  const back: SVGElement[] = [],
    front: SVGElement[] = [];

  if (options.sphere) {
    drawing.append(
      svg('circle', {
        cx: middle,
        cy: middle,
        r: unit * options.sphere,
        fill: 'currentColor',
        'fill-opacity': 0.035,
        stroke: 'currentColor',
        'stroke-opacity': 0.35,
      }),
    );
    for (const normal of [
      [1, 0, 0],
      [0, 1, 0],
      [0, 0, 1],
    ] as Place[]) {
      const places = ring(normal, options.sphere);
      for (let i = 0; i + 1 < places.length; i += 2) {
        const piece = places.slice(i, i + 3),
          near = see(piece[1]!)[2] > 0;
        (near ? front : back).push(
          svg('path', { d: path(piece), fill: 'none', stroke: 'currentColor', 'stroke-opacity': near ? 0.28 : 0.1 }),
        );
      }
    }
  }
  if (options.axes) {
    (
      [
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
      ] as Place[]
    ).forEach((along, i) => {
      const end = along.map(value => value * options.extent * 0.97) as unknown as Place,
        [x, y] = spot(end);
      back.push(
        svg('path', { d: path([[0, 0, 0], end]), stroke: 'currentColor', 'stroke-opacity': 0.3 }),
        svg(
          'text',
          { x: x.toFixed(1), y: (y + 4).toFixed(1), 'text-anchor': 'middle', 'fill-opacity': 0.75 },
          options.axes![i]!,
        ),
      );
    });
  }
  if (options.plane) {
    const { normal, radius, colour } = options.plane;
    back.push(
      svg('path', {
        d: path(ring(normal, radius)),
        fill: colour,
        'fill-opacity': 0.13,
        stroke: colour,
        'stroke-opacity': 0.6,
      }),
    );
  }
  if (options.axis) {
    const length = Math.hypot(...options.axis.along);
    const end = options.axis.along.map(value => (value / length) * options.extent * 0.9) as unknown as Place;
    const start = end.map(value => -value) as unknown as Place,
      [x, y] = spot(end);
    back.push(
      svg('path', {
        d: path([start, end]),
        stroke: 'currentColor',
        'stroke-width': 1.6,
        'stroke-dasharray': '6 4',
        'stroke-opacity': 0.8,
      }),
      svg('text', { x: (x + 6).toFixed(1), y: (y - 4).toFixed(1), 'font-weight': 600 }, options.axis.label),
    );
  }
  drawing.append(...back, ...front);

  for (const arrow of options.arrows ?? []) {
    const [x, y] = spot(arrow.to);
    const dx = x - middle,
      dy = y - middle,
      length = Math.hypot(dx, dy);
    if (!(length > 0.5)) continue;
    const ux = dx / length,
      uy = dy / length,
      head = Math.min(9, length / 2);
    const line = svg('path', {
      d: `M${middle} ${middle}L${x.toFixed(1)} ${y.toFixed(1)}`,
      stroke: arrow.colour,
      'stroke-width': 2,
      'stroke-dasharray': arrow.dash ?? 'none',
    });
    const tip = svg('path', {
      d:
        `M${x.toFixed(1)} ${y.toFixed(1)}L${(x - head * ux - 0.45 * head * uy).toFixed(1)} ${(y - head * uy + 0.45 * head * ux).toFixed(1)}` +
        `L${(x - head * ux + 0.45 * head * uy).toFixed(1)} ${(y - head * uy - 0.45 * head * ux).toFixed(1)}Z`,
      fill: arrow.colour,
    });
    tip.append(svg('title', {}, arrow.label));
    drawing.append(line, tip);
  }

  const dots = options.dots.map(dot => ({ dot, spot: spot(dot.at) })).sort((a, b) => a.spot[2] - b.spot[2]);
  for (const { dot } of dots) {
    if (dot.trail && dot.trail.length > 0) {
      drawing.append(
        svg('path', {
          d: path([...dot.trail, dot.at]),
          fill: 'none',
          stroke: dot.colour,
          'stroke-width': 1.4,
          'stroke-opacity': 0.5,
          'stroke-linejoin': 'round',
        }),
      );
    }
  }
  for (const {
    dot,
    spot: [x, y, depth],
  } of dots) {
    const near = 0.5 + 0.5 * Math.max(-1, Math.min(1, depth / options.extent)),
      radius = (dot.radius ?? 5) * (0.75 + 0.45 * near);
    const shape =
      dot.shape === 'square'
        ? svg('rect', {
            x: (x - radius).toFixed(1),
            y: (y - radius).toFixed(1),
            width: (2 * radius).toFixed(1),
            height: (2 * radius).toFixed(1),
          })
        : svg('circle', { cx: x.toFixed(1), cy: y.toFixed(1), r: radius.toFixed(1) });
    for (const [key, value] of Object.entries({
      fill: dot.colour,
      'fill-opacity': (0.45 + 0.55 * near).toFixed(2),
      stroke: 'var(--ground)',
      'stroke-width': 1,
      class: 'dot',
    }))
      shape.setAttribute(key, String(value));
    shape.append(svg('title', {}, dot.label));
    drawing.append(shape);
  }
  captions.forEach((words, i) =>
    drawing.append(svg('text', { x: 2, y: size + 12 + 19 * i, 'fill-opacity': 0.85 }, words)),
  );
}
