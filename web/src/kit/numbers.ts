// Numbers as they are read in figures, on the page and in reports.
export const clamp = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

// "1,234.50"; the minus is a minus, not a hyphen.
export function plain(value: number, decimals: number): string {
  const [whole, part] = Math.abs(value)
    .toFixed(clamp(decimals, 0, 100))
    .split('.') as [string, string?];
  return (value < 0 ? '−' : '') + whole.replace(/\B(?=(\d{3})+$)/g, ',') + (part ? `.${part}` : '');
}

// Under the pointer: four digits say where a point is.
export const short = (value: number): string => (Number.isFinite(value) ? String(Number(value.toPrecision(4))) : 'n/a');

export function scientific(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  const text = size >= 1e-3 && size < 1e5 ? value.toPrecision(5) : value.toExponential(3);
  return text.replaceAll('-', '−');
}

// Correctly rounded, which 10 ** exponent is not in every browser.
export const powerOfTen = (exponent: number): number => Number(`1e${exponent}`);

// Angles stand in the address in whole degrees.
export const radians = (angle: number): number => (angle * Math.PI) / 180;
export const degrees = (angle: number): string => (((angle * 180) / Math.PI) % 360).toFixed(0);

// What stands in the address was written by anyone.
export function numberOf(text: string, fallback: number, low = -Infinity, high = Infinity): number {
  const value = text.trim() === '' ? NaN : Number(text);
  return Number.isFinite(value) ? clamp(value, low, high) : fallback;
}
