// Points in space as SVG, seen from a direction that a drag or the arrow keys turn. Parallel projection.
import { emptyFigure, svgElement } from './collapse_chart';

export type Place = readonly [number, number, number];
export interface Camera { yaw: number; pitch: number } // degrees

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

const turn = Math.PI / 180;

function viewer(camera: Camera) {
  const cy = Math.cos(camera.yaw * turn), sy = Math.sin(camera.yaw * turn);
  const cp = Math.cos(camera.pitch * turn), sp = Math.sin(camera.pitch * turn);
  // z is up; the last coordinate grows towards the eye.
  return ([x, y, z]: Place): Place => {
    const right = -sy * x + cy * y, front = cy * x + sy * y;
    return [right, cp * z - sp * front, sp * z + cp * front];
  };
}

function across(normal: Place): [Place, Place] {
  const length = Math.hypot(...normal), n = normal.map(value => value / length) as unknown as Place;
  const other: Place = Math.abs(n[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0];
  const cross = (a: Place, b: Place): Place => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const u = cross(n, other), ul = Math.hypot(...u), first = u.map(value => value / ul) as unknown as Place;
  return [first, cross(n, first)];
}

function ring(normal: Place, radius: number, count = 72): Place[] {
  const [u, v] = across(normal);
  return Array.from({ length: count + 1 }, (_, i) => {
    const c = radius * Math.cos(2 * Math.PI * i / count), s = radius * Math.sin(2 * Math.PI * i / count);
    return [c * u[0] + s * v[0], c * u[1] + s * v[1], c * u[2] + s * v[2]] as Place;
  });
}

export function drawScene(options: SceneOptions, camera: Camera): SVGSVGElement {
  const { size } = options, middle = size / 2, unit = (size / 2 - 12) / options.extent;
  const captions = options.captions ?? [];
  const svg = emptyFigure(size, size + 19 * captions.length, options.title, 13);
  const see = viewer(camera);
  const spot = (place: Place): [number, number, number] => {
    const [x, y, depth] = see(place);
    return [middle + unit * x, middle - unit * y, depth];
  };
  const path = (places: Place[]): string => places.map((place, i) => {
    const [x, y] = spot(place);
    return `${i === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`;
  }).join('');
  const back: SVGElement[] = [], front: SVGElement[] = [];

  if (options.sphere) {
    svg.append(svgElement('circle', { cx: middle, cy: middle, r: unit * options.sphere, fill: 'currentColor', 'fill-opacity': 0.035, stroke: 'currentColor', 'stroke-opacity': 0.35 }));
    for (const normal of [[1, 0, 0], [0, 1, 0], [0, 0, 1]] as Place[]) {
      const places = ring(normal, options.sphere);
      for (let i = 0; i + 1 < places.length; i += 2) {
        const piece = places.slice(i, i + 3), near = see(piece[1]!)[2] > 0;
        (near ? front : back).push(svgElement('path', { d: path(piece), fill: 'none', stroke: 'currentColor', 'stroke-opacity': near ? 0.28 : 0.1 }));
      }
    }
  }
  if (options.axes) {
    ([[1, 0, 0], [0, 1, 0], [0, 0, 1]] as Place[]).forEach((along, i) => {
      const end = along.map(value => value * options.extent * 0.97) as unknown as Place, [x, y] = spot(end);
      back.push(svgElement('path', { d: path([[0, 0, 0], end]), stroke: 'currentColor', 'stroke-opacity': 0.3 }),
        svgElement('text', { x: x.toFixed(1), y: (y + 4).toFixed(1), 'text-anchor': 'middle', 'fill-opacity': 0.75 }, options.axes![i]!));
    });
  }
  if (options.plane) {
    const { normal, radius, colour } = options.plane;
    back.push(svgElement('path', { d: path(ring(normal, radius)), fill: colour, 'fill-opacity': 0.13, stroke: colour, 'stroke-opacity': 0.6 }));
  }
  if (options.axis) {
    const length = Math.hypot(...options.axis.along);
    const end = options.axis.along.map(value => value / length * options.extent * 0.9) as unknown as Place;
    const start = end.map(value => -value) as unknown as Place, [x, y] = spot(end);
    back.push(svgElement('path', { d: path([start, end]), stroke: 'currentColor', 'stroke-width': 1.6, 'stroke-dasharray': '6 4', 'stroke-opacity': 0.8 }),
      svgElement('text', { x: (x + 6).toFixed(1), y: (y - 4).toFixed(1), 'font-weight': 600 }, options.axis.label));
  }
  svg.append(...back, ...front);

  for (const arrow of options.arrows ?? []) {
    const [x, y] = spot(arrow.to);
    const dx = x - middle, dy = y - middle, length = Math.hypot(dx, dy);
    if (!(length > 0.5)) continue;
    const ux = dx / length, uy = dy / length, head = Math.min(9, length / 2);
    const line = svgElement('path', { d: `M${middle} ${middle}L${x.toFixed(1)} ${y.toFixed(1)}`, stroke: arrow.colour, 'stroke-width': 2, 'stroke-dasharray': arrow.dash ?? 'none' });
    const tip = svgElement('path', {
      d: `M${x.toFixed(1)} ${y.toFixed(1)}L${(x - head * ux - 0.45 * head * uy).toFixed(1)} ${(y - head * uy + 0.45 * head * ux).toFixed(1)}` +
        `L${(x - head * ux + 0.45 * head * uy).toFixed(1)} ${(y - head * uy - 0.45 * head * ux).toFixed(1)}Z`, fill: arrow.colour,
    });
    tip.append(svgElement('title', {}, arrow.label));
    svg.append(line, tip);
  }

  const dots = options.dots.map(dot => ({ dot, spot: spot(dot.at) })).sort((a, b) => a.spot[2] - b.spot[2]);
  for (const { dot } of dots) {
    if (dot.trail && dot.trail.length > 0) {
      svg.append(svgElement('path', { d: path([...dot.trail, dot.at]), fill: 'none', stroke: dot.colour, 'stroke-width': 1.4, 'stroke-opacity': 0.5, 'stroke-linejoin': 'round' }));
    }
  }
  for (const { dot, spot: [x, y, depth] } of dots) {
    const near = 0.5 + 0.5 * Math.max(-1, Math.min(1, depth / options.extent)), radius = (dot.radius ?? 5) * (0.75 + 0.45 * near);
    const shape = dot.shape === 'square'
      ? svgElement('rect', { x: (x - radius).toFixed(1), y: (y - radius).toFixed(1), width: (2 * radius).toFixed(1), height: (2 * radius).toFixed(1) })
      : svgElement('circle', { cx: x.toFixed(1), cy: y.toFixed(1), r: radius.toFixed(1) });
    for (const [key, value] of Object.entries({ fill: dot.colour, 'fill-opacity': (0.45 + 0.55 * near).toFixed(2), stroke: 'var(--ground)', 'stroke-width': 1, class: 'dot' }))
      shape.setAttribute(key, String(value));
    shape.append(svgElement('title', {}, dot.label));
    svg.append(shape);
  }
  captions.forEach((words, i) => svg.append(svgElement('text', { x: 2, y: size + 12 + 19 * i, 'fill-opacity': 0.85 }, words)));
  return svg;
}

// Drag and arrow keys turn the camera.
export function rotates(body: HTMLElement, camera: Camera, what: string, redraw: () => void): void {
  body.tabIndex = 0;
  body.dataset.rotates = '';
  body.setAttribute('role', 'group');
  body.setAttribute('aria-label', `${what}. Drag, or use the arrow keys, to turn it.`);
  const turned = (yaw: number, pitch: number): void => {
    camera.yaw = (camera.yaw + yaw + 720) % 360;
    camera.pitch = Math.max(-90, Math.min(90, camera.pitch + pitch));
    redraw();
  };
  body.addEventListener('keydown', event => {
    const ways: Record<string, [number, number]> = { ArrowLeft: [5, 0], ArrowRight: [-5, 0], ArrowUp: [0, -5], ArrowDown: [0, 5] };
    const way = ways[event.key];
    if (!way) return;
    event.preventDefault();
    turned(...way);
  });
  let last: [number, number] | null = null;
  body.addEventListener('pointerdown', event => {
    last = [event.clientX, event.clientY];
    body.setPointerCapture(event.pointerId);
  });
  body.addEventListener('pointermove', event => {
    if (!last) return;
    turned(-(event.clientX - last[0]) * 0.5, (event.clientY - last[1]) * 0.5);
    last = [event.clientX, event.clientY];
  });
  for (const end of ['pointerup', 'pointercancel'] as const) body.addEventListener(end, () => { last = null; });
}
