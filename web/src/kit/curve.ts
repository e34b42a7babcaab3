// Paths of curves and of the bands around them.
import { area, line } from 'd3-shape';
import type { Axis } from './axis';

export interface CurvePoint {
  x: number;
  y: number;
  low: number;
  high: number;
}

const nothing = 'M0 0'; // an empty path would be an error in a few readers

// Broken where there is no value.
export function linePath(points: readonly { x: number; y: number }[], x: Axis, y: Axis): string {
  return (
    line<{ x: number; y: number }>()
      .defined(point => x.shows(point.x) && y.shows(point.y))
      .x(point => x.at(point.x))
      .y(point => y.at(point.y))
      .digits(2)(points as { x: number; y: number }[]) || nothing
  );
}

// Runs of points with an interval. The lower end of one that reaches 0 is nowhere on a logarithmic axis.
function pieces(points: readonly CurvePoint[], x: Axis, y: Axis): CurvePoint[][] {
  const found: CurvePoint[][] = [];
  let open = false;
  for (const point of points) {
    const shown = x.shows(point.x) && y.shows(point.y) && Number.isFinite(point.low) && y.shows(point.high);
    if (shown && !open) found.push([]);
    if (shown) found[found.length - 1]!.push(point);
    open = shown;
  }
  return found;
}
const lowest = (point: CurvePoint, y: Axis): number => (y.shows(point.low) ? y.at(point.low) : 1e6);

export function bandPath(points: readonly CurvePoint[], x: Axis, y: Axis): string {
  const path = area<CurvePoint>()
    .x(point => x.at(point.x))
    .y1(point => y.at(point.high))
    .y0(point => lowest(point, y))
    .digits(2);
  return (
    pieces(points, x, y)
      .filter(piece => piece.length > 1)
      .map(piece => path(piece))
      .join('') || nothing
  );
}

// Of points that stand alone.
export function barsPath(points: readonly CurvePoint[], x: Axis, y: Axis): string {
  return (
    pieces(points, x, y)
      .filter(piece => piece.length === 1)
      .map(([point]) => {
        const at = x.at(point!.x).toFixed(2);
        return `M${at} ${y.at(point!.high).toFixed(2)}L${at} ${lowest(point!, y).toFixed(2)}`;
      })
      .join('') || nothing
  );
}
