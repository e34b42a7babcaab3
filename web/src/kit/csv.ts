// Tables as text, quotes as in RFC 4180.
export function csv(rows: (string | number)[][]): string {
  const cell = (value: string | number): string => {
    const text = String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map(row => row.map(cell).join(',') + '\r\n').join('');
}

export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [],
    at = 0;
  while (at < text.length) {
    let field = '';
    if (text[at] === '"') {
      for (;;) {
        const end = text.indexOf('"', at + 1);
        if (end < 0) {
          field += text.slice(at + 1);
          at = text.length;
          break;
        }
        field += text.slice(at + 1, end);
        at = end + 1;
        if (text[at] !== '"') break;
        field += '"';
      }
    } else {
      let end = at;
      while (end < text.length && text[end] !== ',' && text[end] !== '\n' && text[end] !== '\r') ++end;
      field = text.slice(at, end);
      at = end;
    }
    row.push(field);
    if (text[at] === ',') {
      ++at;
      if (at === text.length) row.push('');
      continue;
    }
    while (text[at] === '\r' || text[at] === '\n') {
      if (text[at++] === '\n') break;
    }
    rows.push(row);
    row = [];
  }
  if (row.length) rows.push(row);
  return rows;
}
