/** What of the stores is meant: all partners of a cell, or one of them. */
import { raw } from './client.js';

/** A cell's number, or a partner. */
export type Scope = number | { readonly partnerId: number };

/** SQL that is true of the rows of `partners` that are meant. */
export const inScopeText = (scope: Scope): string =>
  typeof scope === 'number' ? `partners.cell = ${scope}` : `partners.partner_id = ${scope.partnerId}`;

/** The same, to be part of a statement. */
export const inScope = (scope: Scope): unknown => raw(inScopeText(scope));
