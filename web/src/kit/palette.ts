// Okabe and Ito's colours without yellow, and the dashes, as src/report/draw.cc has them; style.css holds the colours
// and says how dark ground changes them.
const colourCount = 7;

export function colour(index: number): string {
  return `var(--colour-${(index % colourCount) + 1})`;
}

export const palette = {
  blue: colour(0),
  vermillion: colour(1),
  green: colour(2),
  purple: colour(3),
  orange: colour(4),
  sky: colour(5),
  grey: 'var(--faint)',
};

// Of stroke-dasharray: a second way to tell curves apart.
export const dashes = ['none', '8 3', '2 2.5', '9 3 2 3', '15 4', '9 3 2 3 2 3', '4.5 4.5', '15 3 5 3'] as const;

// From dark blue over green to yellow: an order seen with any colour vision, and in grey.
export function ordered(share: number): string {
  const stops = [
    [59, 72, 152],
    [38, 116, 142],
    [32, 150, 128],
    [94, 188, 92],
    [205, 190, 32],
  ] as const;
  const at = Math.min(0.9999, Math.max(0, share)) * (stops.length - 1),
    low = Math.floor(at),
    part = at - low;
  return `rgb(${stops[low]!.map((value, i) => Math.round(value + part * (stops[low + 1]![i]! - value))).join(' ')})`;
}
