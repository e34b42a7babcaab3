// What stands under the pointer, and what is read aloud.
const hint = document.getElementById('hint')!,
  live = document.getElementById('live')!;

export function showHint(text: string | undefined, x: number, y: number): void {
  hint.hidden = !text;
  if (!text) return;
  hint.textContent = text;
  const right = x + 14 + hint.offsetWidth > innerWidth,
    below = y + 14 + hint.offsetHeight > innerHeight;
  hint.style.left = `${Math.max(4, right ? x - 14 - hint.offsetWidth : x + 14)}px`;
  hint.style.top = `${Math.max(4, below ? y - 14 - hint.offsetHeight : y + 14)}px`;
}

export function hideHint(): void {
  hint.hidden = true;
}

// At a place of a figure.
export function hintAt(svg: SVGSVGElement, text: string, x: number, y: number): void {
  const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM()!);
  showHint(text, at.x, at.y);
}

export function say(text: string): void {
  live.textContent = text;
}

// The hint of an element, or of the nearest that has one.
export function hintOf(target: EventTarget | null): string | undefined {
  return (target as Element).closest<HTMLElement>('[data-hint]')?.dataset.hint;
}
