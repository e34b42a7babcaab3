// The theme that a reader chose, on the page and in every report from the same place.
const place = 'normscope-theme';

export function rememberedTheme(): string | null {
  try {
    return localStorage.getItem(place);
  } catch {
    return null; // a page from disk may be allowed nothing
  }
}

export function rememberTheme(name: string): void {
  try {
    localStorage.setItem(place, name);
  } catch {
    // Kept for this visit only.
  }
}
