// Widths of text as src/report/draw.cc estimates them, rather too wide than too narrow: the reader's font is not known.
function characterWidth(character: string): number {
  const code = character.codePointAt(0)!;
  if (code >= 0x3000) return 1.05; // mostly full width
  if (code >= 0x80) return 0.65;
  if ('mwMW@%'.includes(character)) return 0.95;
  if (character >= 'A' && character <= 'Z') return 0.74;
  return " .,:;'|!()[]ijlft".includes(character) ? 0.36 : 0.57;
}

export function textWidth(words: string, size: number): number {
  let width = 0;
  for (const character of words) width += characterWidth(character);
  return width * size;
}
