import { roughBytes } from '../../content/payloads.ts'
import type { Payload } from '../../events/payload.ts'
import type { RunError } from '../../events/run.ts'

/** Bytes of values in one page of a list. Further values are references. */
const PAGE_BYTES = 1 << 20

/** A value that is not part of the list: where to read it, and its bytes of JSON. */
interface Reference {
  readonly size: number
  readonly href: string
}

type ValueFields<Name extends string> = { readonly [K in Name]: unknown } & {
  readonly [K in `${Name}_ref`]?: Reference
}

/** The values in one page of a list: small ones as they are until the page is full, all others as references. */
export class PageValues {
  #bytes = 0

  /** The fields of a value: `name`, and `name_ref` if the value is left out. */
  fields<Name extends string>(name: Name, payload: Payload, href: string): ValueFields<Name>
  fields(name: string, { value = null, ref }: Payload, href: string): Record<string, unknown> {
    if (ref) return { [name]: null, [`${name}_ref`]: { size: ref.size, href } }
    if (this.#takes(value)) return { [name]: value }
    return { [name]: null, [`${name}_ref`]: { size: Buffer.byteLength(JSON.stringify(value)), href } }
  }

  /** An error of a run; without its stack and details when the page is full. */
  error(error: RunError): RunError {
    const { code, message, name, ...details } = error
    if (this.#takes(details)) return error
    return { code, message, ...(name !== undefined && { name }) }
  }

  #takes(value: unknown): boolean {
    const left = PAGE_BYTES - this.#bytes
    const bytes = roughBytes(value, left)
    if (bytes >= left) return false
    this.#bytes += bytes
    return true
  }
}
