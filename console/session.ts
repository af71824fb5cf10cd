/** Who is signed in, and what the role permits. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Schemas } from './api.js';

export const Signed = createContext<Schemas['Session'] | undefined>(undefined);

/** May change things: everybody but an auditor. The service decides; the pages only leave out what it would refuse. */
export const useMayChange = (): boolean => useContext(Signed)?.role !== 'auditor';

export const useIsAdmin = (): boolean => useContext(Signed)?.role === 'admin';
