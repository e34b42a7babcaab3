// One section of the explanation: words and formulas beside a figure with its controls.
import type { Core } from '../core';
import { html } from '../kit/elements';

export interface Mounted {
  redraw?(): void; // after the theme or the width has changed
  leave?(): void; // it goes out of sight: what moves stops
  remove?(): void;
}

export interface Section {
  id: string; // in the address
  title: string;
  // Draws into its two places when the reader comes near.
  mount(places: { words: HTMLElement; figure: HTMLElement }, context: Context): Mounted;
}

export interface Context {
  core: Core;
  still: () => boolean; // the reader asked for no motion
}

export const paragraph = (...children: (Node | string)[]): HTMLElement => html('p', {}, ...children);
export const note = (...children: (Node | string)[]): HTMLElement => html('p', { class: 'note' }, ...children);
export const link = (href: string, words: string): HTMLElement => html('a', { href }, words);
export const lab = (href: string, words: string): HTMLElement =>
  html('p', { class: 'to-lab' }, html('a', { href }, words));

// Moves a value from one number to another in about half a second, or at once; returns how to stop it.
export function glide(
  from: number,
  to: number,
  still: boolean,
  show: (value: number) => void,
  done: () => void = () => {},
  milliseconds = 900,
): () => void {
  if (still || from === to) {
    show(to);
    done();
    return () => {};
  }
  const begun = performance.now();
  let frame = requestAnimationFrame(function step(now: number) {
    const share = Math.min(1, Math.max(0, (now - begun) / milliseconds)),
      eased = share * share * (3 - 2 * share);
    show(share === 1 ? to : from + (to - from) * eased);
    if (share < 1) frame = requestAnimationFrame(step);
    else done();
  });
  return () => cancelAnimationFrame(frame);
}

// Draws at most once per frame, whatever asks for it.
export function coalesced(draw: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}
