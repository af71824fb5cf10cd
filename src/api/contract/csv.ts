/** The media type of CSV answers, and the check whether a client prefers CSV to JSON. */

export const CSV_TYPE = 'text/csv; charset=utf-8; header=present';

/** Returns whether the Accept header (RFC 9110, 12.5.1) ranks text/csv above application/json. */
export function prefersCsv(accept: string): boolean {
  const ranges = new Map<string, number>();
  for (const range of accept.toLowerCase().split(',')) {
    const [type, ...parameters] = range.split(';').map((part) => part.trim());
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    ranges.set(type!, weight === undefined ? 1 : Number(weight.slice(2)));
  }
  const quality = (type: string): number =>
    ranges.get(type) ?? ranges.get(`${type.split('/')[0]}/*`) ?? ranges.get('*/*') ?? 0;
  return quality('text/csv') > quality('application/json');
}
