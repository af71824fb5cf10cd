/** Where the operator is: the part of the address behind `#`, such as `#/partners/2?page=3`. */
import { useEffect, useState } from 'preact/hooks';

export interface Place {
  /** Parts of the path, decoded. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
}

function readPlace(): Place {
  const [path = '', query = ''] = window.location.hash.replace(/^#\/?/, '').split('?');
  return {
    parts: path.split('/').filter(Boolean).map(decodeURIComponent),
    query: new URLSearchParams(query),
  };
}

export function usePlace(): Place {
  const [place, setPlace] = useState(readPlace);
  useEffect(() => {
    const read = (): void => setPlace(readPlace());
    window.addEventListener('hashchange', read);
    return () => window.removeEventListener('hashchange', read);
  }, []);
  return place;
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
