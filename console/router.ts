/** Where the operator is: the part of the address behind `#`, such as `#/partners/2?page=3`. */
import { useEffect, useMemo, useState } from 'preact/hooks';

export interface Place {
  /** Parts of the path, decoded. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
}

/** An address that somebody typed may be none: it is taken as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function placeOf(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  return {
    parts: path.split('/').filter(Boolean).map(decoded),
    query: new URLSearchParams(query),
  };
}

export function usePlace(): Place {
  const [hash, setHash] = useState(window.location.hash);
  useEffect(() => {
    const read = (): void => setHash(window.location.hash);
    window.addEventListener('hashchange', read);
    // An effect runs some time after what it belongs to is drawn: the address may have changed since.
    read();
    return () => window.removeEventListener('hashchange', read);
  }, []);
  return useMemo(() => placeOf(hash), [hash]);
}

/** The address of a place. Members of the query that are empty are left out. */
export function linkTo(parts: readonly (string | number)[], query: Record<string, string> = {}): string {
  const path = parts.map((part) => encodeURIComponent(part)).join('/');
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== '')).toString();
  return `#/${path}${given === '' ? '' : `?${given}`}`;
}

export const go = (parts: readonly (string | number)[], query: Record<string, string> = {}): void => {
  window.location.hash = linkTo(parts, query);
};
