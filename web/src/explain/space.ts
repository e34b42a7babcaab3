// Keys in space: their hull, the plane orthogonal to 1, the sphere they are scaled to, the query, and beside it the sphere of
// directions, coloured by who wins there. The axes are fixed: nothing shrinks because something else grows.
import type { Core } from '../core';
import { html, svg } from '../kit/elements';
import { onRotate, project, unproject, type Camera, type Vector } from '../kit/scene3d';
import { paintWinners } from '../views/winners';
import { hidden, keyColour, nameOf, stateOf, type Stage } from './stage';

const size = 460,
  centre = size / 2,
  extent = 2.45, // half the width of what is shown
  unit = (size / 2 - 8) / extent,
  queryLength = 1.9;
const ones: Vector = [1, 1, 1];

export interface SpaceView {
  element: HTMLElement;
  marks: HTMLElement; // what the signs of the figure mean
  draw(stage: Stage, look: Look): void;
}
export interface Look {
  before: number[][]; // where the keys came from
  query: number[];
  plane: boolean;
  sphere: boolean;
  moved: boolean;
}
interface SpaceOptions {
  id: string;
  label: string;
  query: (direction: number[]) => void; // the reader turns the query
  winners?: boolean; // with the sphere of directions
}

const asVector = (values: readonly number[]): Vector => [values[0]!, values[1]!, values[2]!];
const lengthOf = (values: readonly number[]): number => Math.hypot(...values);
const stretched = (values: readonly number[], length: number): Vector => {
  const own = lengthOf(values) || 1;
  return asVector(values.map(value => (value * length) / own));
};

// Around the axes of the screen.
function turned(camera: Camera, direction: readonly number[], right: number, up: number): number[] {
  const [x, y, z] = project(camera, asVector(direction));
  const x1 = x * Math.cos(right) + z * Math.sin(right),
    z1 = z * Math.cos(right) - x * Math.sin(right);
  return [...unproject(camera, [x1, y * Math.cos(up) + z1 * Math.sin(up), z1 * Math.cos(up) - y * Math.sin(up)])];
}

const arrowKeys: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};
// Arrow keys turn by 2°, with Shift by 10°.
function onArrows(element: Element, turn: (right: number, up: number) => void): void {
  element.addEventListener('keydown', event => {
    const { key, shiftKey } = event as KeyboardEvent,
      step = arrowKeys[key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const by = ((shiftKey ? 10 : 2) * Math.PI) / 180;
    turn(step[0] * by, step[1] * by);
  });
}

export function createSpace(core: Core, options: SpaceOptions): SpaceView {
  // From here 1 points upwards, and the plane orthogonal to it is a flat ellipse.
  const camera: Camera = { azimuth: 0.35, elevation: -0.42 };
  let current: { stage: Stage; look: Look } | undefined;

  const ground = svg('g'),
    middle = svg('g'),
    points = svg('g');
  const tip = svg('g', {
    class: 'query-tip',
    tabindex: '0',
    role: 'slider',
    'aria-label': 'Query: arrow keys turn it, with Shift further',
    'aria-valuemin': '1',
    'data-testid': `${options.id}-query`,
  });
  const figure = svg(
    'svg',
    {
      viewBox: `0 0 ${size} ${size}`,
      class: 'space turns',
      role: 'group',
      tabindex: '0',
      'aria-label': `${options.label}. Arrow keys turn the view.`,
      'data-testid': `${options.id}-space`,
    },
    ground,
    middle,
    points,
    tip,
  );
  onRotate(figure, camera, () => redraw());

  const place = (point: readonly number[]): [number, number, number] => {
    const [right, up, depth] = project(camera, asVector(point));
    return [centre + unit * right, centre - unit * up, depth];
  };
  const line = (from: readonly number[], to: readonly number[], attributes: Record<string, string>): SVGElement => {
    const [x1, y1] = place(from),
      [x2, y2] = place(to);
    return svg('line', { x1, y1, x2, y2, ...attributes });
  };
  // Of radius r in the plane orthogonal to 1.
  const circle = (r: number): string => {
    const u = stretched([1, -1, 0], r),
      v = stretched([1, 1, -2], r);
    return (
      'M' +
      Array.from({ length: 60 }, (_, i) => {
        const a = (i * Math.PI) / 30;
        const [x, y] = place(u.map((value, c) => Math.cos(a) * value + Math.sin(a) * v[c]!));
        return `${x.toFixed(1)} ${y.toFixed(1)}`;
      }).join('L') +
      'Z'
    );
  };

  const canvas = html('canvas', { class: 'winners', 'aria-hidden': 'true' });
  const regionNames = svg('g');
  const dot = svg('circle', {
    class: 'direction',
    tabindex: '0',
    role: 'slider',
    'aria-label': 'Direction of the query: arrow keys turn it, with Shift further',
    'aria-valuemin': '1',
    'data-testid': `${options.id}-direction`,
  });
  const globe = svg(
    'svg',
    { viewBox: '-106 -106 212 212', class: 'globe', role: 'group', 'aria-label': 'Who wins in each direction' },
    svg('circle', { r: 100, class: 'globe-edge' }),
    regionNames,
    dot,
  );
  const owners = html('p', { class: 'note owners', 'data-testid': `${options.id}-owners` });
  const directions = html(
    'div',
    { class: 'directions' },
    html('h3', {}, 'Who wins in each direction'),
    html('div', { class: 'globe-room' }, canvas, globe),
    owners,
  );
  const element = html(
    'div',
    { class: options.winners ? 'space-room with-winners' : 'space-room' },
    figure,
    options.winners ? directions : null,
  );

  function tellQuery(direction: number[]): void {
    options.query([...stretched(direction, 1)]);
  }
  function dragging(target: Element, move: (event: PointerEvent, last: { x: number; y: number }) => void): void {
    let last: { x: number; y: number } | undefined;
    target.addEventListener('pointerdown', raw => {
      const event = raw as PointerEvent;
      event.preventDefault();
      (target as SVGElement).focus();
      target.setPointerCapture(event.pointerId);
      last = { x: event.clientX, y: event.clientY };
    });
    target.addEventListener('pointermove', raw => {
      const event = raw as PointerEvent;
      if (!last) return;
      move(event, last);
      last = { x: event.clientX, y: event.clientY };
    });
    for (const end of ['pointerup', 'pointercancel']) target.addEventListener(end, () => (last = undefined));
  }
  dragging(tip, (event, last) => {
    const radius = (figure.clientWidth / size) * unit * queryLength;
    tellQuery(
      turned(camera, current!.look.query, (event.clientX - last.x) / radius, -(event.clientY - last.y) / radius),
    );
  });
  // The dot follows the pointer over the near half; beyond the rim it goes round.
  dragging(dot, event => {
    const box = globe.getBoundingClientRect(),
      r = (box.width / 212) * 100;
    const x = (event.clientX - box.left - box.width / 2) / r,
      y = -(event.clientY - box.top - box.height / 2) / r,
      out = Math.hypot(x, y);
    const far = Math.min(1.999, out);
    const depth = far <= 1 ? Math.sqrt(1 - far * far) : -Math.sqrt(1 - (2 - far) ** 2);
    const flat = far <= 1 ? far : 2 - far;
    tellQuery([...unproject(camera, [(x / (out || 1)) * flat, (y / (out || 1)) * flat, depth])]);
  });
  const turn = (right: number, up: number): void => tellQuery(turned(camera, current!.look.query, right, up));
  onArrows(tip, turn);
  onArrows(dot, turn);

  function drawGround(look: Look): SVGElement[] {
    const pieces: SVGElement[] = [];
    if (look.plane) pieces.push(svg('path', { d: circle(2.2), class: 'plane' }));
    if (look.sphere) {
      pieces.push(svg('circle', { cx: centre, cy: centre, r: unit * Math.sqrt(3), class: 'sphere' }));
      if (look.plane) pieces.push(svg('path', { d: circle(Math.sqrt(3)), class: 'sphere' }));
    }
    for (let axis = 0; axis < 3; ++axis) {
      const end = [0, 1, 2].map(c => (c === axis ? 1.2 : 0)),
        [x, y] = place(end.map(value => value * 1.12));
      pieces.push(
        line([0, 0, 0], end, { class: 'axis' }),
        svg('text', { x, y: y + 4, class: 'axis-name', 'text-anchor': 'middle' }, `x${'₁₂₃'[axis]}`),
      );
    }
    const up = stretched(ones, 2.1),
      [x, y] = place(stretched(ones, 2.3));
    pieces.push(
      line(
        up.map(value => -value),
        up,
        { class: 'ones' },
      ),
      svg('text', { x, y: y + 5, class: 'ones-name', 'text-anchor': 'middle' }, '1'),
    );
    return pieces;
  }

  function drawMiddle({ keys, set, edges }: Stage, look: Look): SVGElement[] {
    const pieces: SVGElement[] = edges.map(([from, to]) => line(keys[from]!, keys[to]!, { class: 'hull-edge' }));
    for (const term of set.keys[hidden]!.cover) {
      pieces.push(
        line(keys[hidden]!, keys[term.index]!, {
          class: 'cover',
          stroke: keyColour(hidden),
          'data-key': String(hidden + 1),
        }),
      );
    }
    if (look.moved)
      look.before.forEach((from, i) => {
        const [x, y] = place(from);
        pieces.push(
          line(from, keys[i]!, { class: 'trail', stroke: keyColour(i) }),
          svg('circle', { cx: x, cy: y, r: 3.5, class: 'was', stroke: keyColour(i) }),
        );
      });
    const [x1, y1] = place([0, 0, 0]),
      [x2, y2] = place(stretched(look.query, queryLength));
    pieces.push(svg('line', { x1, y1, x2, y2, class: 'query-line' }));
    return pieces;
  }

  function drawPoints({ keys, set }: Stage): SVGElement[] {
    return keys
      .map((key, i) => ({ i, at: place(key) }))
      .sort((a, b) => a.at[2] - b.at[2])
      .map(({ i, at: [x, y, depth] }) => {
        const state = stateOf(set.keys[i]!);
        return marker(i, x, y, state, 12 + 1.4 * Math.max(-1.5, Math.min(1.5, depth)));
      });
  }

  const marks = html('p', { class: 'note', 'data-testid': `${options.id}-marks` });
  function explainMarks({ set }: Stage, look: Look): void {
    const states = set.keys.map(stateOf);
    marks.textContent = [
      'A disc: a key that can be selected.',
      states.includes('unselectable') ? 'A dashed ring: one that cannot.' : '',
      states.some(state => state.startsWith('tied')) ? 'A disc in a dotted ring: tied.' : '',
      set.keys[hidden]!.cover.length > 0 ? `Dotted lines: to the keys of which ${nameOf(hidden)} is a mixture.` : '',
      look.moved ? 'A small ring: where a key was before.' : '',
      'Grey lines: the hull; the dashed line: along 1.',
    ]
      .filter(Boolean)
      .join(' ');
  }

  function redraw(): void {
    if (!current) return;
    const { stage, look } = current;
    explainMarks(stage, look);
    ground.replaceChildren(...drawGround(look));
    middle.replaceChildren(...drawMiddle(stage, look));
    points.replaceChildren(...drawPoints(stage));
    const [x, y] = place(stretched(look.query, queryLength)),
      angle = (Math.atan2(y - centre, x - centre) * 180) / Math.PI;
    tip.setAttribute('transform', `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    tip.replaceChildren(
      svg('circle', { r: 20, class: 'grip' }),
      svg('path', { d: 'M10 0L-9 -8L-5 0L-9 8Z', transform: `rotate(${angle.toFixed(0)})`, class: 'arrow' }),
      svg('text', { x: 9, y: -10, class: 'query-name' }, 'q'),
    );
    const [right, up, depth] = project(camera, stretched(look.query, 1));
    dot.setAttribute('cx', (100 * right).toFixed(1));
    dot.setAttribute('cy', (-100 * up).toFixed(1));
    dot.setAttribute('r', depth >= 0 ? '9' : '6');
    dot.classList.toggle('behind', depth < 0);
    const winner = stage.ranks.indexOf(1);
    const told = `${nameOf(winner)} wins; ${nameOf(hidden)} has rank ${stage.ranks[hidden]} of ${stage.ranks.length}`;
    for (const handle of [tip, dot]) {
      handle.setAttribute('aria-valuemax', String(stage.ranks.length));
      handle.setAttribute('aria-valuenow', String(stage.ranks[hidden]));
      handle.setAttribute('aria-valuetext', told);
    }
    if (options.winners) {
      const regions = paintWinners(
        core,
        canvas,
        camera,
        stage.keys,
        stage.keys.map((_, i) => keyColour(i)),
      );
      regionNames.replaceChildren(
        ...regions.map(({ key, x, y }) =>
          svg(
            'text',
            { x: 100 * x, y: 6 - 100 * y, class: 'region-name', 'text-anchor': 'middle', 'data-key': String(key + 1) },
            String(key + 1),
          ),
        ),
      );
      owners.textContent =
        stage.set.keys[hidden]!.verdict === 'selectable'
          ? `${nameOf(hidden)} owns directions now. Turn the query there.`
          : `No direction has the colour of ${nameOf(hidden)}, also not on the far side: turn the view and look.`;
    }
  }

  return {
    element,
    marks,
    draw(stage, look) {
      current = { stage, look };
      redraw();
    },
  };
}

// A key in a figure: filled if it can be selected, hollow and dashed if not, with a ring if tied.
export function marker(key: number, x: number, y: number, state: string, radius = 12): SVGElement {
  const hollow = state === 'unselectable';
  return svg(
    'g',
    {
      class: `marker ${state === 'tied up to rounding' ? 'tied' : state}`,
      'data-key': String(key + 1),
      'data-state': state,
      transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
    },
    svg('title', {}, `${nameOf(key)}: ${state}`),
    state.startsWith('tied') ? svg('circle', { r: radius + 4, class: 'tie', stroke: keyColour(key) }) : null,
    svg('circle', {
      r: radius,
      class: 'disc',
      fill: hollow ? 'var(--ground)' : keyColour(key),
      stroke: keyColour(key),
      'stroke-dasharray': hollow ? '4 3' : null,
    }),
    svg('text', { y: 4.5, 'text-anchor': 'middle', class: 'marker-name' }, String(key + 1)),
  );
}
