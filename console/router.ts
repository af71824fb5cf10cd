/** The current place in the console: the fragment of the address, such as `#/partners/2?page=3`. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

export interface Place {
  /** Decoded parts of the path. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
}

/** Decodes a part of the path. A part that is not valid percent-encoding is used as typed. */
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
    // The address may have changed between the first render and this effect, so it is read again.
    read();
    return () => window.removeEventListener('hashchange', read);
  }, []);
  return useMemo(() => placeOf(hash), [hash]);
}

/** Calls a function when the address changes while the component is shown. */
export function useAddressChange(onChange: () => void): void {
  const latest = useRef(onChange);
  latest.current = onChange;
  useEffect(() => {
    const change = (): void => latest.current();
    window.addEventListener('hashchange', change);
    return () => window.removeEventListener('hashchange', change);
  }, []);
}

/** Returns the address of a place. Empty members of the query are left out. */
export function linkTo(parts: readonly (string | number)[], query: Record<string, string> = {}): string {
  const path = parts.map((part) => encodeURIComponent(part)).join('/');
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== '')).toString();
  return `#/${path}${given === '' ? '' : `?${given}`}`;
}

export const go = (parts: readonly (string | number)[], query: Record<string, string> = {}): void => {
  window.location.hash = linkTo(parts, query);
};
