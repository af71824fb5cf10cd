/**
 * Lists all operations of all APIs by resource. Each resource is a folder: its contract.ts has the schemas
 * and operations, its routes.ts has the handlers.
 *
 * <paths>
 * /api/partner/v1
 *   /adjustments                    get listAdjustments (adjustments)
 *   /events                         get listEvents (webhooks)
 *   /games                          get listGames (games),
 *                                   post registerGame (games)
 *     /{id}
 *       /blocks                     get listBlocks (proofs)
 *         /{number}                 get getBlock (proofs)
 *       /communal                   get getCommunal (communal)
 *         /events                   get listCommunalEvents (communal)
 *         /progress                 get getCommunalProgress (communal)
 *       /pool                       get getPool (raffles)
 *       /rtp                        get getGameRtp (returns)
 *   /par-sheets                     get listParSheets (games),
 *                                   post uploadParSheet (games)
 *   /players
 *     /{playerId}                   get getPlayer (players)
 *       /community-bonuses          get listCommunityBonuses (communal)
 *       /recall                     get recallGames (players)
 *       /spins                      get listPlayerSpins (players)
 *   /reports
 *     /games                        get getPartnerGamesReport (reports)
 *   /rounds                         get listRoundsByTime (blackjack)
 *   /sandbox
 *     /next-outcome                 post chooseNextOutcome (sandbox)
 *     /settlement-preview           get previewSettlement (sandbox)
 *   /settlements                    get listSettlements (settlements)
 *     /{date}                       get getSettlement (settlements)
 *       /acknowledge                post acknowledgeSettlement (settlements)
 *       /dispute                    post disputeSettlement (settlements)
 *   /spin                           post spin (spins)
 *   /spins                          get listSpins (spins)
 *     /{spinId}                     get getSpin (spins)
 *       /proof                      get getSpinProof (proofs)
 *   /version                        get getVersion (versions)
 *   /webhooks                       get listWebhooks (webhooks),
 *                                   post registerWebhook (webhooks)
 *     /{id}                         delete deleteWebhook (webhooks),
 *                                   patch updateWebhook (webhooks)
 *       /deliveries                 get listDeliveries (webhooks)
 *         /{deliveryId}
 *           /resend                 post resendOwnDelivery (webhooks)
 *       /rotate-secret              post rotateWebhookSecret (webhooks)
 *       /test                       post testWebhook (webhooks)
 * /api/operator/v1
 *   /api-versions                   get listApiVersions (versions)
 *     /{version}
 *       /deprecate                  post deprecateApiVersion (versions)
 *   /audit-log                      get listAuditLog (auditLog)
 *   /cells                          get listCells (cells),
 *                                   post addCells (cells)
 *     /{cell}                       patch setDraining (cells)
 *   /dealing                        get getDealing (dealing),
 *                                   put setDealing (dealing)
 *   /deliveries                     get listAllDeliveries (webhooks)
 *     /{id}
 *       /resend                     post resendDelivery (webhooks)
 *   /games                          get listAllGames (games)
 *     /{id}                         get getGame (games),
 *                                   patch updateGame (games)
 *       /blocks                     get listAnyBlocks (proofs),
 *                                   post makeBlocks (games)
 *         /{number}                 get getAnyBlock (proofs)
 *       /communal                   get getCommunalPot (communal),
 *                                   put setCommunal (communal)
 *         /events                   get listCommunalPayouts (communal)
 *         /funding                  post fundCommunal (communal)
 *       /days                       get listGameDays (games)
 *       /rotate                     post rotateGame (games)
 *       /rtp                        get getAnyGameRtp (returns)
 *   /ledger
 *     /days                         get listLedgerDays (ledgerDays)
 *   /operators                      get listOperators (operators),
 *                                   post createOperator (operators)
 *     /{name}                       delete revokeOperator (operators)
 *       /rotate                     post rotateOperatorKey (operators)
 *   /overview                       get getOverview (overview)
 *   /par-sheets                     get listAllParSheets (games)
 *     /{id}                         get getAnyParSheet (games),
 *                                   patch updateParSheet (games)
 *   /partners                       get listPartners (partners),
 *                                   post createPartner (partners)
 *     /{id}                         get getPartner (partners),
 *                                   patch updatePartner (partners)
 *       /blackjack-games            post createBlackjackGame (blackjack)
 *       /keys                       get listKeys (partners),
 *                                   post issueKey (partners)
 *         /{keyId}                  delete revokeKey (partners),
 *                                   patch updateKey (partners)
 *           /rotate                 post rotateKey (partners)
 *       /move                       post movePartner (partners)
 *       /moves                      get listMoves (partners)
 *       /players
 *         /{playerId}               patch updatePlayer (players)
 *           /adjustments            post adjustBalance (players)
 *           /recall                 get recallPlayerGames (players)
 *           /statement              get getStatement (players)
 *       /raffles                    post createRaffle (raffles)
 *       /requests                   get findRequest (requests)
 *       /settlements
 *         /{date}                   get getPartnerSettlement (settlements),
 *                                   post makeSettlement (settlements)
 *           /preview                get previewPartnerSettlement (settlements)
 *       /webhooks                   get listPartnerWebhooks (webhooks)
 *   /program-checks                 get listProgramChecks (programChecks)
 *   /progressives                   get listProgressives (communal)
 *   /raffles
 *     /{id}
 *       /void                       post voidRaffle (raffles)
 *   /reports
 *     /events                       get getEventsReport (reports)
 *     /games                        get getGamesReport (reports)
 *     /liability                    get getLiabilityReport (reports)
 *   /rounds                         get listAllRounds (blackjack)
 *     /{roundId}                    get showRound (blackjack)
 *       /close                      post closeRound (blackjack)
 *       /proof                      get getAnyRoundProof (proofs)
 *       /void                       post voidRound (blackjack)
 *   /rtp-reviews                    get listRtpReviews (returns)
 *     /{id}                         get getRtpReview (returns)
 *       /close                      post closeRtpReview (returns)
 *       /notes                      post addRtpNote (returns)
 *   /search                         get search (search)
 *   /session                        delete signOut (operators),
 *                                   get getSession (operators),
 *                                   post signIn (operators)
 *   /settlements                    get listAllSettlements (settlements)
 *   /spins
 *     /{spinId}                     get showSpin (spins)
 *       /proof                      get getAnySpinProof (proofs)
 *   /traffic                        get listTraffic (traffic)
 *     /hours                        get listTrafficHours (traffic)
 *   /webhooks
 *     /resend                       post resendFailed (webhooks)
 * /api/play/blackjack
 *   /action                         post actInRound (blackjack)
 *   /deal                           post dealRound (blackjack)
 *   /rounds                         get listRounds (blackjack)
 *     /{roundId}                    get getRound (blackjack)
 *       /proof                      get getRoundProof (proofs)
 * </paths>
 */

import * as adjustments from './adjustments/contract.js';
import * as auditLog from './auditLog/contract.js';
import * as blackjack from './blackjack/contract.js';
import * as cells from './cells/contract.js';
import * as communal from './communal/contract.js';
import type { Endpoint } from './contract/endpoint.js';
import * as dealing from './dealing/contract.js';
import * as games from './games/contract.js';
import * as ledgerDays from './ledgerDays/contract.js';
import * as operators from './operators/contract.js';
import * as overview from './overview/contract.js';
import * as partners from './partners/contract.js';
import * as players from './players/contract.js';
import * as programChecks from './programChecks/contract.js';
import * as proofs from './proofs/contract.js';
import * as raffles from './raffles/contract.js';
import * as reports from './reports/contract.js';
import * as requests from './requests/contract.js';
import * as returns from './returns/contract.js';
import * as sandbox from './sandbox/contract.js';
import * as search from './search/contract.js';
import * as settlements from './settlements/contract.js';
import * as spins from './spins/contract.js';
import * as traffic from './traffic/contract.js';
import * as versions from './versions/contract.js';
import * as webhooks from './webhooks/contract.js';

export const CONTRACTS = {
  adjustments,
  auditLog,
  blackjack,
  cells,
  communal,
  dealing,
  games,
  ledgerDays,
  operators,
  overview,
  partners,
  players,
  programChecks,
  proofs,
  raffles,
  reports,
  requests,
  returns,
  sandbox,
  search,
  settlements,
  spins,
  traffic,
  versions,
  webhooks,
};

export const isEndpoint = (value: unknown): value is Endpoint =>
  typeof value === 'object' && value !== null && 'operationId' in value;

export const ENDPOINTS: readonly Endpoint[] = Object.values(CONTRACTS).flatMap((contract) =>
  Object.values<unknown>(contract).filter(isEndpoint),
);
