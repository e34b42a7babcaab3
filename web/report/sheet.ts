// What is not curves is zoomed as a whole picture.
import { fitted, listenZoom, whole, zoomed, type Box, type Spot, type Window } from '../src/kit/zoom';
import { hideHint } from './hint';
import { numbers, type Part } from './parts';

const smallest = 0.02; // share of the picture

export class Sheet implements Part {
  private readonly left: number;
  private readonly top: number;
  private readonly width: number;
  private readonly height: number;
  private x: Window = whole;
  private y: Window = whole;

  // Without boxes, drags belong to others, and only the wheel and the buttons zoom.
  constructor(
    private readonly drawing: SVGSVGElement,
    boxes: boolean,
  ) {
    [this.left, this.top, this.width, this.height] = numbers(drawing.getAttribute('viewBox')) as [
      number,
      number,
      number,
      number,
    ];
    const all = { x: this.left, y: this.top, width: this.width, height: this.height };
    listenZoom(drawing, drawing, {
      frame: () => all,
      boxes,
      onBox: box => this.fill(box),
      onWheel: (factor, at) => this.zoom(factor, at),
      onReset: () => boxes && this.reset(),
      onDrag: hideHint,
    });
  }

  // The picture keeps its proportions: the box is seen whole, with what stands beside it.
  private fill({ x, y, width, height }: Box): void {
    const size = Math.max(width / this.width, height / this.height);
    const middle = [(x + width / 2 - this.left) / this.width, (y + height / 2 - this.top) / this.height] as const;
    this.show(
      { low: middle[0] - size / 2, high: middle[0] + size / 2 },
      { low: middle[1] - size / 2, high: middle[1] + size / 2 },
    );
  }

  zoom(factor: number, at?: Spot): void {
    this.show(
      zoomed(this.x, factor, at && (at.x - this.left) / this.width),
      zoomed(this.y, factor, at && (at.y - this.top) / this.height),
    );
  }

  reset(): void {
    this.show(whole, whole);
  }

  private show(x: Window, y: Window): void {
    this.x = fitted(x, smallest);
    this.y = fitted(y, smallest);
    const seen = [
      this.left + this.x.low * this.width,
      this.top + this.y.low * this.height,
      (this.x.high - this.x.low) * this.width,
      (this.y.high - this.y.low) * this.height,
    ];
    this.drawing.setAttribute('viewBox', seen.map(value => +value.toFixed(3)).join(' '));
    hideHint();
  }
}
