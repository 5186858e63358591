export type Kind =
  | 'event'
  | 'webhook'
  | 'file'
  | 'upload'
  | 'variable'
  | 'deployment'
  | 'erasure'
  | 'rotation'

/** A write of a client. Later writes of the same register replace it. */
export interface Write {
  readonly kind: Kind
  readonly register: string
  readonly value: string
  /** Set when the client has received the reply. */
  acknowledged?: {
    readonly request_id: string
    /** The id that the reply has named: of an event, run, build or file. */
    readonly id: string
  }
}

/** The record of a client: what it has sent, and what the service has acknowledged. */
export class Ledger {
  readonly writes: Write[]

  constructor(writes: Write[] = []) {
    this.writes = writes
  }

  begin(kind: Kind, register: string, value: string): Write {
    const write: Write = { kind, register, value }
    this.writes.push(write)
    return write
  }

  /** The record as it was when only these requests had been answered. */
  asOf(request_ids: ReadonlySet<string>): Ledger {
    return new Ledger(
      this.writes.map((write) => {
        if (write.acknowledged && request_ids.has(write.acknowledged.request_id)) return write
        const { kind, register, value } = write
        return { kind, register, value }
      }),
    )
  }

  acknowledged(kind: Kind): (Write & Required<Pick<Write, 'acknowledged'>>)[] {
    return this.writes.filter(
      (write): write is Write & Required<Pick<Write, 'acknowledged'>> =>
        write.kind === kind && write.acknowledged !== undefined,
    )
  }

  /** For each register with an acknowledged write: that value, and those that may have replaced it. */
  possible(kind: Kind): Map<string, readonly string[]> {
    const found = new Map<string, readonly string[]>()
    for (const [register, writes] of Map.groupBy(
      this.writes.filter((write) => write.kind === kind),
      ({ register }) => register,
    )) {
      const last = writes.findLastIndex(({ acknowledged }) => acknowledged !== undefined)
      if (last >= 0)
        found.set(
          register,
          writes.slice(last).map(({ value }) => value),
        )
    }
    return found
  }
}
