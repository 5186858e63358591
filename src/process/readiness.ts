import { buildingReason, type BuildingShare } from '../projections/buildingReason.ts'
import type { Outages } from './outages.ts'

/** The reason why this node is not ready, for `/readyz` and for refused requests. */
export class Readiness {
  readonly #stopping: AbortSignal
  readonly #outages: Pick<Outages, 'reason'>
  #waiting: (() => string) | null = starting
  #building: () => readonly BuildingShare[] = () => []
  #failed: string | null = null
  #refusing: string | null = null

  constructor(stopping: AbortSignal, outages: Pick<Outages, 'reason'> = { reason: null }) {
    this.#stopping = stopping
    this.#outages = outages
  }

  /** Sets the reason for waiting, which may change while it lasts; null clears it. */
  waitFor(reason: string | (() => string) | null): void {
    this.#waiting = typeof reason === 'string' ? () => reason : (reason ?? starting)
  }

  /** Waits for read models that are built from the log. */
  waitForBuilding(building: () => readonly BuildingShare[]): void {
    this.#building = building
    this.waitFor(() => buildingReason(building()))
  }

  /** The read models that are being built, and their shares of the log. */
  get building(): readonly BuildingShare[] {
    return this.#building()
  }

  started(): void {
    this.#waiting = null
    this.#building = () => []
  }

  /** Sets the reason why an engine refuses writes; null clears it. It comes first, because the start waits for it too. */
  refusing(reason: string | null): void {
    this.#refusing = reason && `Writes are refused: ${reason}`
  }

  /** Records what ends with a restart only: a background loop stays stopped, or a file is damaged. The first reason is kept. */
  fail(reason: string): void {
    this.#failed ??= reason
  }

  /** The reason why the node is not ready; null when it is. */
  get reason(): string | null {
    if (this.#stopping.aborted) return 'The server is stopping'
    return this.#failed ?? this.#refusing ?? this.waiting ?? this.#outages.reason
  }

  /** What the start waits for; null when it has ended. */
  get waiting(): string | null {
    return this.#waiting?.() ?? null
  }
}

const starting = () => 'The server is starting'
