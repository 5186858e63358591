/** What a group has taken from its source and not dealt with yet, by place in the source. */
export class Progress {
  /** In the order of the source: for each open event the place before it, and its number. */
  readonly #open = new Map<number, { readonly before: number; readonly sequence: number }>()
  #read: number
  #sequence = 0
  #saved = 0

  /** @param place everything up to here was dealt with before; -1 at the beginning. */
  constructor(place: number) {
    this.#read = place
  }

  /** The source was read up to here, and there was nothing for the group. */
  pass(place: number): void {
    this.#read = place
  }

  take(place: number): void {
    this.#open.set(place, { before: this.#read, sequence: this.#sequence++ })
    this.#read = place
  }

  done(place: number): void {
    this.#open.delete(place)
  }

  /** How many events in a row were dealt with since the last `save`. */
  get unsaved(): number {
    const [lowest] = this.#open.values()
    return (lowest?.sequence ?? this.#sequence) - this.#saved
  }

  /** The place up to which everything was dealt with, which is saved now. */
  save(): number {
    const [lowest] = this.#open.values()
    this.#saved += this.unsaved
    return lowest?.before ?? this.#read
  }
}
