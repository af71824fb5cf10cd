/** Parses the query parameters `from` and `to`, which restrict a result to a range of time. */
import { type Fault, invalid } from '../../domain/errors.js';
import { NO_TIME, rfc3339Time } from '../../domain/rfc3339.js';

/** Range of time: `from` inclusive, `to` exclusive. An absent end does not restrict the result. */
export interface TimeRange {
  readonly from: Date | undefined;
  readonly to: Date | undefined;
}

export function timeRangeOf(query: { readonly from?: string; readonly to?: string }): TimeRange {
  const faults: Fault[] = [];
  const time = (name: 'from' | 'to'): Date | undefined => {
    const text = query[name];
    const date = text === undefined ? undefined : rfc3339Time(text);
    if (text !== undefined && date === undefined) faults.push({ path: `/${name}`, message: NO_TIME });
    return date;
  };
  const [from, to] = [time('from'), time('to')];
  if (from !== undefined && to !== undefined && to < from)
    faults.push({ path: '/to', message: 'must not be before `from`' });
  if (faults.length > 0) throw invalid(faults);
  return { from, to };
}
