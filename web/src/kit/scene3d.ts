// Space seen from far away: an orthographic projection that the reader turns by dragging or with the arrow keys.
export type Vector = readonly [number, number, number];

export interface Camera {
  azimuth: number; // radians around the third axis
  elevation: number; // radians above the plane of the first two
}

// Right, up and depth (towards the reader) of a point.
export function project(camera: Camera, [x, y, z]: Vector): Vector {
  const ca = Math.cos(camera.azimuth),
    sa = Math.sin(camera.azimuth),
    ce = Math.cos(camera.elevation),
    se = Math.sin(camera.elevation);
  const along = ca * x + sa * y;
  return [-sa * x + ca * y, ce * z - se * along, se * z + ce * along];
}

// The point at a place of the screen and a depth.
export function unproject(camera: Camera, [right, up, depth]: Vector): Vector {
  const ca = Math.cos(camera.azimuth),
    sa = Math.sin(camera.azimuth),
    ce = Math.cos(camera.elevation),
    se = Math.sin(camera.elevation);
  const along = ce * depth - se * up;
  return [ca * along - sa * right, sa * along + ca * right, ce * up + se * depth];
}

export function onRotate(element: SVGElement, camera: Camera, redraw: () => void): void {
  let last: { x: number; y: number } | undefined;
  const turn = (dx: number, dy: number) => {
    camera.azimuth -= dx;
    camera.elevation = Math.max(-Math.PI / 2, Math.min(Math.PI / 2, camera.elevation + dy));
    redraw();
  };
  element.addEventListener('pointerdown', event => {
    if (event.defaultPrevented) return; // a point in front took it
    last = { x: event.clientX, y: event.clientY };
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener('pointermove', event => {
    if (!last) return;
    turn((event.clientX - last.x) / 150, (event.clientY - last.y) / 150);
    last = { x: event.clientX, y: event.clientY };
  });
  for (const end of ['pointerup', 'pointercancel'] as const) element.addEventListener(end, () => (last = undefined));
  element.addEventListener('keydown', event => {
    const steps: Record<string, [number, number]> = {
      ArrowLeft: [-0.1, 0],
      ArrowRight: [0.1, 0],
      ArrowUp: [0, -0.1],
      ArrowDown: [0, 0.1],
    };
    const step = steps[event.key];
    if (!step || event.target !== element) return;
    event.preventDefault();
    const times = event.shiftKey ? 5 : 1;
    turn(times * step[0], times * step[1]);
  });
}
