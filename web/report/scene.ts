// Points in three dimensions, drawn as src/report/scatter_svg.cc does, and turned.
import { svg } from '../src/kit/elements';
import { clamp } from '../src/kit/numbers';
import { project, type Vector } from '../src/kit/scene3d';
import { hideHint, say } from './hint';
import { commanded, numbers, set, type Part } from './parts';

const fixed = (value: number): string => value.toFixed(1);

function pointShape(kind: number, x: number, y: number, radius: number): string {
  if (kind === 1) {
    const side = 1.78 * radius;
    return `M${fixed(x - side / 2)} ${fixed(y - side / 2)}h${fixed(side)}v${fixed(side)}h${fixed(-side)}Z`;
  }
  if (kind === 2)
    return `M${fixed(x)} ${fixed(y - 1.4 * radius)}l${fixed(1.3 * radius)} ${fixed(2.2 * radius)}h${fixed(-2.6 * radius)}Z`;
  if (kind === 3) {
    const r = fixed(1.35 * radius);
    return `M${fixed(x)} ${fixed(y - 1.35 * radius)}l${r} ${r}l-${r} ${r}l-${r} -${r}Z`;
  }
  const r = fixed(radius),
    across = fixed(2 * radius);
  return `M${fixed(x - radius)} ${fixed(y)}a${r} ${r} 0 1 1 ${across} 0a${r} ${r} 0 1 1 -${across} 0Z`;
}

function arrowHead(x0: number, y0: number, x: number, y: number, size: number): string {
  const length = Math.hypot(x - x0, y - y0);
  if (length < 1) return pointShape(0, x, y, size / 2);
  const ax = ((x - x0) / length) * size,
    ay = ((y - y0) / length) * size;
  return `M${fixed(x)} ${fixed(y)}L${fixed(x - ax - 0.4 * ay)} ${fixed(y - ay + 0.4 * ax)}L${fixed(x - ax + 0.4 * ay)} ${fixed(y - ay - 0.4 * ax)}Z`;
}

export class Scene implements Part {
  private readonly centre: [number, number];
  private readonly radius: number;
  private readonly half: number;
  private readonly home: [number, number]; // azimuth and elevation, degrees
  private readonly items: { element: SVGElement; at: Vector }[];
  private azimuth: number;
  private elevation: number;
  private waiting = false;

  constructor(private readonly panel: SVGGElement) {
    this.centre = numbers(panel.dataset.centre) as [number, number];
    this.radius = Number(panel.dataset.radius);
    this.half = this.radius * Number(panel.dataset.beyond);
    this.home = numbers(panel.dataset.view) as [number, number];
    [this.azimuth, this.elevation] = this.home;
    this.items = [...panel.querySelectorAll<SVGElement>('[data-at]')].map(element => ({
      element,
      at: numbers(element.dataset.at) as unknown as Vector,
    }));
    const [left, top, right, bottom] = numbers(panel.dataset.frame) as [number, number, number, number];
    const frame = svg('rect', {
      class: 'frame',
      x: left,
      y: top,
      width: right - left,
      height: bottom - top,
      fill: 'none',
      'pointer-events': 'all',
      tabindex: 0,
      role: 'application',
      'aria-label': `${panel.dataset.title || 'Points'}, ${this.items.length} points in three dimensions. Arrow keys turn the scene, zero turns it back.`,
    });
    panel.prepend(frame);
    let start: { x: number; y: number; azimuth: number; elevation: number } | null = null;
    panel.addEventListener('pointerdown', event => {
      if (event.button !== 0) return;
      start = { x: event.clientX, y: event.clientY, azimuth: this.azimuth, elevation: this.elevation };
      panel.setPointerCapture(event.pointerId);
      event.stopPropagation();
    });
    panel.addEventListener('pointermove', event => {
      if (!start) return;
      hideHint();
      this.turn(start.azimuth - (event.clientX - start.x) * 0.5, start.elevation + (event.clientY - start.y) * 0.5);
    });
    for (const type of ['pointerup', 'pointercancel'] as const) {
      panel.addEventListener(type, () => {
        start = null;
      });
    }
    panel.addEventListener('dblclick', () => this.reset());
    const turns: Record<string, [number, number]> = {
      ArrowLeft: [-5, 0],
      ArrowRight: [5, 0],
      ArrowUp: [0, 5],
      ArrowDown: [0, -5],
    };
    frame.addEventListener('keydown', event => {
      const by = turns[event.key];
      if (commanded(event) || (!by && event.key !== '0')) return;
      event.preventDefault();
      if (by) this.turn(this.azimuth + by[0], this.elevation + by[1]);
      else this.reset();
      say(`seen from azimuth ${Math.round(this.azimuth)}°, elevation ${Math.round(this.elevation)}°`);
    });
  }

  reset(): void {
    this.turn(...this.home);
  }

  // Right, down and towards the reader. The third axis of the camera is the direction (1, 1, 1).
  private see([x, y, z]: Vector): { right: number; down: number; near: number } {
    const camera = { azimuth: (this.azimuth * Math.PI) / 180, elevation: (this.elevation * Math.PI) / 180 };
    const [right, up, near] = project(camera, [
      (x - y) / Math.SQRT2,
      (x + y - 2 * z) / Math.sqrt(6),
      (x + y + z) / Math.sqrt(3),
    ]);
    return { right, down: -up, near };
  }

  private turn(azimuth: number, elevation: number): void {
    this.azimuth = ((azimuth % 360) + 360) % 360;
    this.elevation = clamp(elevation, -90, 90);
    if (!this.waiting) {
      requestAnimationFrame(() => {
        this.waiting = false;
        this.draw();
      });
    }
    this.waiting = true;
  }

  private draw(): void {
    const { radius, half, panel } = this,
      [x0, y0] = this.centre;
    const seen = this.items
      .map(({ element, at }) => ({ element, seen: this.see(at) }))
      .sort((a, b) => a.seen.near - b.seen.near);
    for (const {
      element,
      seen: { right, down, near },
    } of seen) {
      const nearness = clamp((near + 1) / 2, 0, 1),
        opacity = (0.4 + 0.55 * nearness).toFixed(2);
      const x = x0 + radius * right,
        y = y0 + radius * down;
      const tip = element.dataset.shape === undefined ? element.lastElementChild! : element;
      if (tip === element) set(tip, { d: pointShape(Number(element.dataset.shape), x, y, 2.6 + 2.6 * nearness) });
      else {
        set(element.firstElementChild!, { d: `M${x0} ${y0}L${fixed(x)} ${fixed(y)}`, 'stroke-opacity': opacity });
        set(tip, { d: arrowHead(x0, y0, x, y, 8 + 4 * nearness) });
      }
      set(tip, { 'fill-opacity': opacity });
      element.parentNode!.append(element);
    }
    const tilt = (this.elevation * Math.PI) / 180,
      up = half * Math.cos(tilt);
    const change = (name: string, attributes: Record<string, string>): void => {
      const element = panel.querySelector(name);
      if (element) set(element, attributes);
    };
    change('.ones', { d: `M${x0} ${fixed(y0 + up)}L${x0} ${fixed(y0 - up)}` });
    change('.plane', { ry: fixed(Math.abs(half * Math.sin(tilt))) });
    change('.ones-label', { y: fixed(y0 - up + 8) });
    const triad = panel.querySelector<SVGGElement>('.triad')!,
      [cx, cy] = numbers(triad.dataset.centre) as [number, number];
    (
      [
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
      ] as Vector[]
    ).forEach((axis, i) => {
      const { right, down } = this.see(axis),
        [line, head, label] = [...triad.children].slice(3 * i, 3 * i + 3) as [Element, Element, Element];
      const x = cx + 34 * right,
        y = cy + 34 * down;
      set(line, { d: `M${cx} ${cy}L${fixed(x)} ${fixed(y)}` });
      set(head, { d: arrowHead(cx, cy, x, y, 6) });
      set(label, { x: fixed(cx + 47 * right), y: fixed(cy + 47 * down + 4) });
    });
  }
}
