// Okabe and Ito's colours without yellow, as src/report/draw.cc has them; style.css says how dark ground changes them.
export const colourCount = 7;

export function colour(index: number): string {
  return `var(--colour-${(index % colourCount) + 1})`;
}
