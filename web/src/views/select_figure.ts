// The picture of Select: keys before and after the norm, their hull, the query, and around them which key wins in each
// direction. In the plane the winners are a fan on a circle, in space a small sphere of directions.
import type { Core } from '../core';
import { colour } from '../kit/palette';
import { onRotate, project, unproject, type Camera, type Vector } from '../kit/scene3d';
import { arcPath, svg } from '../kit/elements';
import { paintWinners } from './winners';
import { labelOf, largest, numberOf, stateOf, type Answer, type Setting } from './select_model';

const reach = 3, // the end of the slider of magnitudes
  size = 560,
  centre = size / 2,
  radius = 232,
  ringInner = 246,
  ringOuter = 264;

interface Handlers {
  move(which: number | 'query', point: number[]): void;
  choose(key: number): void;
  release(): void;
}

export interface Figure {
  element: SVGSVGElement;
  draw(setting: Setting, answer: Answer): void;
  refit(): void; // other keys come: the axes may take another scale
}

// Black where white would be hard to read; the last colour is the ink itself.
const onColour = ['#fff', '#fff', '#fff', '#111', '#111', '#111', 'var(--ground)'];

// What the marks of the figure mean; only of those that are drawn.
export function legendOf(setting: Setting, { set }: Answer): string {
  const chosen = labelOf(setting, setting.chosen),
    verdict = set.keys[setting.chosen]!,
    changed = setting.projection || setting.scaling;
  return [
    changed
      ? 'Numbered points are the keys before the norm, small ones after it: filled, or hollow if unselectable.'
      : '',
    set.keys.some(key => stateOf(key) === 'unselectable') ? 'A dashed ring: unselectable.' : '',
    set.keys.some(key => stateOf(key).startsWith('tied')) ? 'A dotted ring: tied.' : '',
    setting.d === 2 && set.keys.some(key => stateOf(key) === 'tied up to rounding')
      ? 'A pale part of the great ring (≈) goes to these keys by rounding alone.'
      : '',
    `A thin ring: ${chosen}, which is chosen.`,
    verdict.cover.length > 0 ? `Dashed lines lead to the keys of which ${chosen} is a mixture.` : '',
    verdict.verdict === 'selectable' && setting.d === 2 && set.keys.length > 1
      ? `The dotted line is a query that selects ${chosen}.`
      : '',
    setting.d === 3 && set.keys.some(key => key.verdict === 'tied')
      ? 'Grey on the small sphere: several keys share the highest score.'
      : '',
    setting.d === 3 ? 'Drag the ground to turn the view, drag a point to move it in the plane of the screen.' : '',
  ]
    .filter(Boolean)
    .join(' ');
}

const pad = (point: readonly number[]): Vector => [point[0] ?? 0, point[1] ?? 0, point[2] ?? 0];

export function createFigure(core: Core, handlers: Handlers): Figure {
  const back = svg('g'),
    middle = svg('g'),
    front = svg('g'),
    directions = svg('g');
  const element = svg(
    'svg',
    {
      viewBox: `0 0 ${size} ${size}`,
      class: 'select-figure',
      role: 'group',
      'aria-label': 'Keys, their hull, the query and which key wins in each direction',
      'data-testid': 'figure',
    },
    back,
    directions,
    middle,
    front,
  );
  // From here no key of the first example covers another, nor its query any.
  const camera: Camera = { azimuth: 0.55, elevation: 0.3 };
  let handles: SVGGElement[] = [];
  let current: { setting: Setting; answer: Answer } | undefined;
  let extent = 0,
    dragging = false;

  const flat = () => current!.setting.d === 2;
  const place = (point: readonly number[]): Vector => (flat() ? pad(point) : project(camera, pad(point)));
  const screen = (point: readonly number[]): [number, number, number] => {
    const [right, up, depth] = place(point);
    return [centre + (right * radius) / extent, centre - (up * radius) / extent, depth];
  };

  onRotate(element, camera, () => current && !flat() && redraw());

  // The scale of one set of keys: room for every norm and for the whole way of the slider, so that nothing seems to shrink
  // because something else grows.
  function fit(setting: Setting, answer: Answer): number {
    const points = [...setting.keys, ...answer.normed, setting.query];
    const furthest = Math.max(0.5, Math.sqrt(setting.d), reach, ...points.map(point => Math.hypot(...point))) * 1.06;
    const power = 10 ** Math.floor(Math.log10(furthest));
    return [1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8, 10].find(step => step * power >= furthest)! * power;
  }

  function makeHandle(which: number | 'query'): SVGGElement {
    const handle = svg('g', {
      class: which === 'query' ? 'handle query' : 'handle key',
      tabindex: '0',
      role: 'slider',
      'aria-roledescription': 'point that can be moved',
      'data-testid': which === 'query' ? 'query' : `key-${which + 1}`,
    });
    const at = (event: PointerEvent): [number, number] => {
      const box = element.getBoundingClientRect();
      return [((event.clientX - box.left) / box.width) * size, ((event.clientY - box.top) / box.height) * size];
    };
    let grip: { dx: number; dy: number; depth: number } | undefined;
    handle.addEventListener('pointerdown', event => {
      event.preventDefault();
      handle.focus();
      handle.setPointerCapture(event.pointerId);
      const [x, y] = at(event),
        [hx, hy, depth] = screen(pointOf(which));
      grip = { dx: hx - x, dy: hy - y, depth };
      dragging = true;
    });
    handle.addEventListener('pointermove', event => {
      if (!grip) return;
      const [x, y] = at(event);
      const right = ((x + grip.dx - centre) * extent) / radius,
        up = (-(y + grip.dy - centre) * extent) / radius;
      const point = flat() ? [right, up] : [...unproject(camera, [right, up, grip.depth])];
      handlers.move(
        which,
        point.map(value => +Math.max(-largest, Math.min(largest, value)).toFixed(4)),
      );
    });
    const end = () => {
      if (!grip) return;
      grip = undefined;
      dragging = false;
      handlers.release();
    };
    handle.addEventListener('pointerup', end);
    handle.addEventListener('pointercancel', end);
    handle.addEventListener('focus', () => which !== 'query' && handlers.choose(which));
    handle.addEventListener('keydown', event => {
      const steps: Record<string, [number, number]> = {
        ArrowLeft: [-1, 0],
        ArrowRight: [1, 0],
        ArrowUp: [0, 1],
        ArrowDown: [0, -1],
      };
      const step = steps[event.key];
      if (!step) return;
      event.preventDefault();
      const length = (event.shiftKey ? 10 : 1) * 0.02;
      const [right, up, depth] = place(pointOf(which));
      const moved: Vector = [right + step[0] * length, up + step[1] * length, depth];
      handlers.move(
        which,
        (flat() ? [moved[0], moved[1]] : [...unproject(camera, moved)]).map(value => +value.toFixed(4)),
      );
      handlers.release();
    });
    return handle;
  }

  const pointOf = (which: number | 'query') =>
    which === 'query' ? current!.setting.query : current!.setting.keys[which]!;

  function line(from: readonly number[], to: readonly number[], attributes: Record<string, string>) {
    const [x1, y1] = screen(from),
      [x2, y2] = screen(to);
    return svg('line', { x1, y1, x2, y2, ...attributes });
  }

  function drawBack({ d, projection, scaling }: Setting): SVGElement[] {
    const drawn: SVGElement[] = [];
    for (let axis = 0; axis < d; ++axis) {
      const tip = Array.from({ length: d }, (_, c) => (c === axis ? extent * 0.98 : 0));
      drawn.push(line(d === 2 ? tip.map(value => -value) : [0, 0, 0], tip, { class: 'axis' }));
      const [x, y] = screen(tip);
      drawn.push(
        svg(
          'text',
          {
            x: d === 2 && axis === 1 ? x + 8 : x,
            y: d === 2 && axis === 0 ? y - 7 : y + 4,
            class: 'axis-name',
            'text-anchor': 'middle',
          },
          `x${'₁₂₃'[axis]}`,
        ),
      );
    }
    const root = Math.sqrt(d);
    if (d === 2) {
      if (scaling) drawn.push(svg('circle', { cx: centre, cy: centre, r: (root * radius) / extent, class: 'sphere' }));
      if (projection) {
        drawn.push(line([-0.7 * extent, 0.7 * extent], [0.7 * extent, -0.7 * extent], { class: 'plane-line' }));
        const [x, y] = screen([0.66 * extent, -0.66 * extent]);
        drawn.push(svg('text', { x: x - 8, y: y + 14, class: 'axis-name', 'text-anchor': 'end' }, '⟂ 1'));
      }
      return drawn;
    }
    const u = [Math.SQRT1_2, -Math.SQRT1_2, 0],
      v = [1, 1, -2].map(value => value / Math.sqrt(6));
    const circle = (r: number) =>
      Array.from({ length: 73 }, (_, i) => {
        const a = (i * Math.PI) / 36;
        return screen(u.map((value, c) => r * (Math.cos(a) * value + Math.sin(a) * v[c]!)))
          .slice(0, 2)
          .map(value => value.toFixed(1))
          .join(' ');
      }).join('L');
    if (projection) {
      drawn.push(svg('path', { d: `M${circle(0.95 * extent)}Z`, class: 'plane' }));
      if (scaling) drawn.push(svg('path', { d: `M${circle(root)}Z`, class: 'sphere' }));
      const [x, y] = screen(u.map(value => value * 0.95 * extent));
      drawn.push(svg('text', { x, y, class: 'axis-name', 'text-anchor': 'middle' }, '⟂ 1'));
    }
    if (scaling)
      drawn.push(svg('circle', { cx: centre, cy: centre, r: (root * radius) / extent, class: 'sphere faint' }));
    return drawn;
  }

  // The keys at the place of `key` after the norm, as far as rounding lets anyone tell.
  const together = (answer: Answer, key: number): number[] =>
    answer.normed.flatMap((other, i) =>
      stateOf(answer.set.keys[i]!) === stateOf(answer.set.keys[key]!) &&
      other.every((value, c) => Math.abs(value - answer.normed[key]![c]!) <= 1e-9 * extent)
        ? [i]
        : [],
    );

  // Who is tied, once for each place, where no other such words stand.
  function drawTies(setting: Setting, answer: Answer): SVGElement[] {
    const drawn: SVGElement[] = [],
      taken = [...setting.keys, setting.query].map(point => {
        const [x, y] = screen(point);
        return { x, y: y + 4, width: 32, height: 32 };
      });
    answer.set.keys.forEach((key, i) => {
      const state = stateOf(key),
        keys = together(answer, i);
      if (!state.startsWith('tied') || keys[0] !== i) return;
      const [x, y] = screen(answer.normed[i]!),
        changed = setting.projection || setting.scaling,
        named = keys.map(other => numberOf(setting, other)).join(', '),
        words = `${named}: ${state}`,
        width = 6.6 * words.length;
      if (changed)
        drawn.push(...keys.map(other => svg('circle', { cx: x, cy: y, r: 11, class: 'tie', stroke: colour(other) })));
      const left = Math.max(width / 2, Math.min(size - width / 2, x)),
        height = 14;
      const free = [27, -18, 43, -34, 59, -50, 75, -66].find(step =>
        taken.every(
          other =>
            Math.abs(other.y - y - step) >= (other.height + height) / 2 ||
            Math.abs(other.x - left) >= (other.width + width) / 2,
        ),
      );
      const at = { x: left, y: y + (free ?? 27), width, height };
      taken.push(at);
      drawn.push(svg('text', { x: at.x, y: at.y, class: 'axis-name tie-name', 'text-anchor': 'middle' }, words));
    });
    return drawn;
  }

  function drawFan(setting: Setting, answer: Answer): SVGElement[] {
    // What rounding alone awards is shared by all the keys it might have been awarded to.
    const arcs = answer.arcs.map(arc => {
      const rounding = arc.keys.some(key => stateOf(answer.set.keys[key]!) === 'tied up to rounding');
      return { ...arc, rounding, keys: rounding ? together(answer, arc.keys[0]!) : arc.keys };
    });
    const drawn: SVGElement[] = [
      svg('path', { d: arcPath(centre, centre, ringInner, ringOuter, 0, 2 * Math.PI), class: 'ring' }),
    ];
    for (const arc of arcs) {
      const depth = (ringOuter - ringInner) / arc.keys.length;
      arc.keys.forEach((key, i) => {
        const title = svg(
          'title',
          {},
          `${labelOf(setting, key)} wins here${arc.rounding ? ', up to rounding' : arc.keys.length > 1 ? ', together with equal keys' : ''}`,
        );
        drawn.push(
          svg(
            'path',
            {
              d: arcPath(centre, centre, ringInner + i * depth, ringInner + (i + 1) * depth, arc.from, arc.to),
              fill: colour(key),
              class: arc.rounding ? 'arc rounding' : 'arc',
              'data-testid': `arc-${key + 1}`,
              'data-width': String(arc.to - arc.from),
            },
            title,
          ),
        );
      });
      if (arc.to - arc.from < 0.06) continue;
      const angle = (arc.from + arc.to) / 2,
        r = ringOuter + (Math.abs(Math.cos(angle)) > 0.3 ? 4 : 9);
      drawn.push(
        svg(
          'text',
          {
            x: centre + r * Math.cos(angle),
            y: centre - r * Math.sin(angle) + 4,
            class: 'arc-name',
            'text-anchor': Math.cos(angle) > 0.3 ? 'start' : Math.cos(angle) < -0.3 ? 'end' : 'middle',
          },
          arc.keys.map(key => numberOf(setting, key)).join(arc.rounding ? '≈' : '=') +
            (arc.rounding && arc.keys.length === 1 ? '≈' : ''),
        ),
      );
    }
    return drawn;
  }

  // The sphere of directions, coloured by the winner, turned like the scene. A picture of pixels, so that borders are smooth.
  const canvas = document.createElement('canvas');
  function drawSphere(setting: Setting, { normed }: Answer): SVGElement[] {
    const r = 58,
      x = size - r - 8,
      y = r + 8;
    const regions = paintWinners(
      core,
      canvas,
      camera,
      normed,
      normed.map((_, i) => colour(i)),
    );
    return [
      svg('image', {
        href: canvas.toDataURL(),
        x: x - r,
        y: y - r,
        width: 2 * r,
        height: 2 * r,
        'data-testid': 'sphere',
      }),
      svg(
        'circle',
        { cx: x, cy: y, r, class: 'sphere-edge' },
        svg('title', {}, 'Which key wins in each direction on this side'),
      ),
      ...regions.map(region =>
        svg(
          'text',
          {
            x: x + r * region.x,
            y: y - r * region.y + 4,
            class: 'region-name',
            fill: onColour[region.key % onColour.length]!,
            'text-anchor': 'middle',
            'data-testid': `region-${region.key + 1}`,
          },
          numberOf(setting, region.key),
        ),
      ),
      svg('text', { x, y: y + r + 15, class: 'axis-name', 'text-anchor': 'middle' }, 'winner by direction'),
    ];
  }

  function drawMiddle(setting: Setting, answer: Answer): SVGElement[] {
    const drawn: SVGElement[] = [];
    const { normed } = answer;
    if (setting.d === 2 && answer.edges.length > 2) {
      drawn.push(
        svg('polygon', {
          points: answer.edges.map(([key]) => screen(normed[key]!).slice(0, 2).join(',')).join(' '),
          class: 'hull',
        }),
      );
    } else {
      for (const [from, to] of answer.edges) drawn.push(line(normed[from]!, normed[to]!, { class: 'hull-edge' }));
    }
    const verdict = answer.set.keys[setting.chosen]!;
    for (const term of verdict.cover) {
      drawn.push(
        line(normed[setting.chosen]!, normed[term.index]!, { class: 'cover', stroke: colour(setting.chosen) }),
      );
    }
    if (verdict.verdict === 'selectable' && setting.d === 2 && setting.keys.length > 1) {
      const [a, b] = verdict.witness,
        length = Math.hypot(a!, b!);
      const x = centre + (ringInner * a!) / length,
        y = centre - (ringInner * b!) / length;
      drawn.push(
        svg('line', { x1: centre, y1: centre, x2: x, y2: y, class: 'witness', stroke: colour(setting.chosen) }),
      );
    }
    if (setting.projection || setting.scaling) {
      setting.keys.forEach((key, i) => {
        drawn.push(line(key, normed[i]!, { class: 'moved', stroke: colour(i) }));
        const [x, y] = screen(normed[i]!);
        const inside = stateOf(answer.set.keys[i]!) === 'unselectable';
        drawn.push(
          svg(
            'circle',
            { cx: x, cy: y, r: 7, fill: inside ? 'var(--ground)' : colour(i), stroke: colour(i), class: 'normed' },
            svg('title', {}, `${labelOf(setting, i)} after the norm`),
          ),
        );
      });
    }
    const [x, y] = screen(setting.query),
      [ox, oy] = screen([0, 0, 0]);
    drawn.push(
      ...drawTies(setting, answer),
      svg('line', { x1: ox, y1: oy, x2: x, y2: y, class: 'query-line' }),
      svg('circle', { cx: ox, cy: oy, r: 2.5, class: 'origin' }),
    );
    return drawn;
  }

  function redraw(): void {
    const { setting, answer } = current!;
    if (!dragging) extent = Math.max(extent, fit(setting, answer));
    back.replaceChildren(...drawBack(setting));
    directions.replaceChildren(...(setting.d === 2 ? drawFan(setting, answer) : drawSphere(setting, answer)));
    middle.replaceChildren(...drawMiddle(setting, answer));
    const wanted = setting.keys.length + 1;
    if (handles.length !== wanted) {
      handles = Array.from({ length: wanted }, (_, i) => makeHandle(i === wanted - 1 ? 'query' : i));
      front.replaceChildren(...handles);
    }
    element.classList.toggle('turns', setting.d === 3);
    if (setting.d === 3) element.setAttribute('tabindex', '0');
    else element.removeAttribute('tabindex');
    const changed = setting.projection || setting.scaling;
    // On a small screen the figure shrinks, but not what a finger must hit.
    const zoom = Math.max(1, Math.min(1.6, 480 / (element.clientWidth || size)));
    handles.forEach((handle, i) => {
      const which = i === wanted - 1 ? 'query' : i;
      const [x, y] = screen(pointOf(which));
      const coordinates = pointOf(which)
        .map(value => value.toFixed(2))
        .join(', ');
      handle.setAttribute('aria-valuenow', Math.hypot(...pointOf(which)).toFixed(2));
      handle.setAttribute('transform', `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${zoom.toFixed(2)})`);
      if (which === 'query') {
        handle.setAttribute('aria-label', 'Query');
        handle.setAttribute('aria-valuetext', coordinates);
        const angle = (Math.atan2(y - centre, x - centre) * 180) / Math.PI;
        handle.replaceChildren(
          svg('circle', { r: 16, class: 'grip' }),
          svg('path', { d: 'M7 0L-7 -6.5L-4 0L-7 6.5Z', transform: `rotate(${angle.toFixed(1)})`, class: 'arrow' }),
          svg('text', { y: -12, x: 4, class: 'query-name' }, 'q'),
        );
        return;
      }
      const state = stateOf(answer.set.keys[which]!),
        hollow = changed || state === 'unselectable';
      handle.setAttribute('aria-label', labelOf(setting, which));
      handle.setAttribute('aria-valuetext', `${coordinates}, ${state}`);
      handle.classList.toggle('chosen', which === setting.chosen);
      handle.replaceChildren(
        svg('title', {}, `${labelOf(setting, which)}: ${state}`),
        svg('circle', { r: 18, class: 'grip' }),
        ...(state.startsWith('tied') && !changed
          ? [svg('circle', { r: 14.5, class: 'tie', stroke: colour(which) })]
          : []),
        ...(which === setting.chosen ? [svg('circle', { r: 14.5, class: 'halo' })] : []),
        svg('circle', {
          r: 11,
          fill: hollow ? 'var(--ground)' : colour(which),
          stroke: colour(which),
          'stroke-width': 2.5,
          'stroke-dasharray': state === 'unselectable' ? '3 2.5' : null,
        }),
        svg(
          'text',
          {
            y: 4,
            class: 'key-name',
            fill: hollow ? 'var(--ink)' : onColour[which % onColour.length]!,
            'text-anchor': 'middle',
          },
          numberOf(setting, which),
        ),
      );
    });
  }

  return {
    element,
    draw(setting, answer) {
      current = { setting, answer };
      redraw();
    },
    refit() {
      extent = 0;
    },
  };
}
