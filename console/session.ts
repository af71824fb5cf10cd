/** The signed-in operator and the permissions of its role. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Schemas } from './api.js';

export const Signed = createContext<Schemas['Session'] | undefined>(undefined);

/**
 * Returns whether the operator may make changes of all kinds except of operators. The service enforces this;
 * the pages only hide what it would refuse.
 */
export const useMayChange = (): boolean => !['auditor', 'support'].includes(useContext(Signed)?.role ?? '');

/** Returns whether the operator may block and unblock players, which all roles except auditor may. */
export const useMayBlock = (): boolean => useContext(Signed)?.role !== 'auditor';

export const useIsAdmin = (): boolean => useContext(Signed)?.role === 'admin';
