// The address after '#': the view's id, then its settings as a query.
export function parseAddress(hash: string): { id: string; values: URLSearchParams } {
  const [id, query = ''] = hash.replace(/^#/, '').split(/\?(.*)/s);
  return { id, values: new URLSearchParams(query) };
}

export function addressOf(id: string, values: URLSearchParams): string {
  // Commas, semicolons and colons may stand in a fragment, and lists of numbers read better with them.
  const query = values.toString().replace(/%2C/g, ',').replace(/%3B/g, ';').replace(/%3A/g, ':');
  return query ? `#${id}?${query}` : `#${id}`;
}
