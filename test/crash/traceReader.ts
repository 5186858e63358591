import { createReadStream } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { createInterface } from 'node:readline'
import type { Operation, Step } from './operations.ts'
import { bytesOf, type Call, completed, type Part, partOf } from './straceLine.ts'

/** An open file of the recorded process. */
interface Open {
  readonly handle: number
  readonly path: string
  readonly appends: boolean
  offset: number
}

/** The system calls that the reader understands. Those that it refuses would change files without a trace. */
export const TRACED = [
  'open openat creat close dup dup2 dup3 close_range',
  'write pwrite64 writev pwritev pwritev2 sendmsg sendto',
  'copy_file_range sendfile ftruncate truncate fallocate',
  'fsync fdatasync sync_file_range syncfs sync',
  'rename renameat renameat2 link linkat symlink symlinkat',
  'mkdir mkdirat unlink unlinkat rmdir',
  'clone clone3 fork vfork io_uring_setup',
].flatMap((names) => names.split(' '))

const REQUEST_ID = /^x-request-id: *(\S+)/gim
const HEADER = Buffer.from('X-Request-Id')

/** Reads traces of processes, with all their threads. Changes of files outside of `roots` are left out. */
export class TraceReader {
  readonly #roots: readonly string[]
  readonly #open = new Map<number, Open>()
  readonly #opening = new Map<Call, Open>()
  #nextHandle = 1
  #nextId = 1

  constructor(roots: readonly string[]) {
    this.#roots = roots
  }

  /** Reads the trace of one process. That of a later process can be read next. */
  async read(file: string): Promise<Step[]> {
    this.#open.clear()
    const steps: Step[] = []
    const ids = new Map<Call, number>()
    for (const { type, call } of await momentsIn(file)) {
      if (type === 'end') {
        this.#gotNumber(call)
        const id = ids.get(call)
        if (id !== undefined) steps.push({ type: 'end', id })
        continue
      }
      const operation = this.#operationOf(call)
      if (!operation) continue
      const id = this.#nextId++
      ids.set(call, id)
      steps.push({ type: 'begin', id, operation })
    }
    return steps
  }

  #operationOf(call: Call): Operation | null {
    const { name, args, result } = call
    if (result !== null && result < 0) return null
    const [a = '', b = '', c = '', d = '', e = ''] = args
    switch (name) {
      case 'open':
        return this.#opened(call, pathIn(a), b)
      case 'openat':
        return this.#opened(call, this.#pathAt(a, b), c)
      case 'creat':
        return this.#opened(call, pathIn(a), 'O_CREAT|O_TRUNC|O_WRONLY')
      case 'close':
        this.#open.delete(Number(a))
        return null
      case 'write':
      case 'writev':
      case 'sendmsg':
      case 'sendto':
        return this.#written(Number(a), bytesOf(b), null, result)
      case 'pwrite64':
        return this.#written(Number(a), bytesOf(b), Number(d), result)
      case 'pwritev':
      case 'pwritev2':
        return this.#written(Number(a), bytesOf(b), Number(d), result)
      case 'copy_file_range':
        return this.#copied({ from: a, at: b }, { to: c, at: d }, result ?? Number(e))
      case 'sendfile':
        return this.#copied({ from: b, at: c }, { to: a, at: 'NULL' }, result ?? Number(d))
      case 'ftruncate':
        return this.#on(a, (handle) => ({ kind: 'resize', handle, size: Number(b) }))
      case 'fsync':
      case 'fdatasync':
        return this.#on(a, (handle) => ({ kind: 'sync', handle }))
      case 'rename':
        return this.#named(pathIn(a), pathIn(b), 'rename')
      case 'renameat':
      case 'renameat2':
        return this.#named(this.#pathAt(a, b), this.#pathAt(c, d), 'rename')
      case 'link':
        return this.#named(pathIn(a), pathIn(b), 'link')
      case 'linkat':
        return this.#named(this.#pathAt(a, b), this.#pathAt(c, d), 'link')
      case 'mkdir':
        return this.#at(pathIn(a), 'mkdir')
      case 'mkdirat':
        return this.#at(this.#pathAt(a, b), 'mkdir')
      case 'unlink':
      case 'rmdir':
        return this.#at(pathIn(a), 'remove')
      case 'unlinkat':
        return this.#at(this.#pathAt(a, b), 'remove')
      case 'clone':
      case 'clone3':
      case 'fork':
      case 'vfork':
      case 'sync_file_range': // promises nothing
      case 'sync':
      case 'syncfs':
        return null
      default:
        return this.#unknown(call)
    }
  }

  /** Calls that are harmless elsewhere would change a recorded file in a way that is not understood. */
  #unknown({ name, args }: Call): null {
    const [a = '', b = ''] = args
    // libuv writes files through a ring of this kind. It has another one for its event loop.
    const isRingForFiles =
      name === 'io_uring_setup' && args.some((arg) => arg.includes('IORING_SETUP_SQPOLL'))
    const isOfRecorded = this.#open.has(Number(a)) || [a, b].some((path) => this.#isRecorded(pathIn(path)))
    if (isRingForFiles || isOfRecorded)
      throw new Error(
        `Expected system calls that the model knows, got ${name}(${args.join(', ').slice(0, 200)})`,
      )
    return null
  }

  #isRecorded(path: string): boolean {
    return this.#roots.some((root) => path === root || path.startsWith(`${root}/`))
  }

  #opened(call: Call, path: string, flags: string): Operation | null {
    if (!this.#isRecorded(path)) return null
    const handle = this.#nextHandle++
    this.#opening.set(call, { handle, path, appends: flags.includes('O_APPEND'), offset: 0 })
    return { kind: 'open', handle, path, truncates: flags.includes('O_TRUNC') }
  }

  /** A number belongs to a file from the end of its opening: another thread may close the former file until then. */
  #gotNumber(call: Call): void {
    const open = this.#opening.get(call)
    this.#opening.delete(call)
    if (open && call.result !== null) this.#open.set(call.result, open)
  }

  #written(fd: number, bytes: Buffer, at: number | null, result: number | null): Operation | null {
    const written = result === null ? bytes : bytes.subarray(0, result)
    const open = this.#open.get(fd)
    if (!open) return replyIn(written)
    if (at !== null) return { kind: 'write', handle: open.handle, at, bytes: written }
    const place = open.appends ? 'end' : open.offset
    open.offset += written.length
    return { kind: 'write', handle: open.handle, at: place, bytes: written }
  }

  #copied(
    source: { readonly from: string; readonly at: string },
    target: { readonly to: string; readonly at: string },
    length: number,
  ): Operation | null {
    const [from, to] = [this.#open.get(Number(source.from)), this.#open.get(Number(target.to))]
    if (!to) return null
    if (!from) throw new Error(`Expected a copy of a recorded file to ${to.path}`)
    const placeOf = (open: Open, text: string): number => {
      const given = /^\[(\d+)/.exec(text)?.[1]
      if (given !== undefined) return Number(given)
      open.offset += length
      return open.offset - length
    }
    return {
      kind: 'copy',
      from: { handle: from.handle, at: placeOf(from, source.at) },
      to: { handle: to.handle, at: placeOf(to, target.at) },
      length,
    }
  }

  #on(fd: string, change: (handle: number) => Operation): Operation | null {
    const open = this.#open.get(Number(fd))
    return open ? change(open.handle) : null
  }

  #named(from: string, to: string, kind: 'rename' | 'link'): Operation | null {
    const recorded = [from, to].filter((path) => this.#isRecorded(path)).length
    if (recorded === 1)
      throw new Error(`Expected no ${kind} between a recorded and another place: ${from}, ${to}`)
    return recorded === 2 ? { kind, from, to } : null
  }

  #at(path: string, kind: 'mkdir' | 'remove'): Operation | null {
    return this.#isRecorded(path) && !this.#roots.includes(path) ? { kind, path } : null
  }

  #pathAt(folder: string, name: string): string {
    const path = pathIn(name)
    if (path.startsWith('/') || folder === 'AT_FDCWD') return path
    const open = this.#open.get(Number(folder))
    return open ? join(open.path, path) : path
  }
}

const pathIn = (argument: string): string => {
  if (!argument.startsWith('"')) return ''
  const path = normalize(bytesOf(argument).toString())
  return path.length > 1 && path.endsWith('/') ? dirname(`${path}.`) : path
}

const replyIn = (bytes: Buffer): Operation | null => {
  if (!bytes.includes(HEADER)) return null
  const request_ids = [...bytes.toString('latin1').matchAll(REQUEST_ID)].map(([, id = '']) => id)
  return request_ids.length > 0 ? { kind: 'reply', request_ids } : null
}

interface Moment {
  readonly type: 'begin' | 'end'
  call: Call
}

/** The beginnings and ends of the calls of the first process in the file, in order. Other processes are left out. */
const momentsIn = async (file: string): Promise<readonly Moment[]> => {
  const moments: Moment[] = []
  const begun = new Map<number, Moment>()
  const isOurs = new Map<number, boolean>()
  /** Parts of threads and processes that may run before their creation has returned. */
  const early = new Map<number, Part[]>()

  const take = (part: Part): void => {
    const thread = part.type === 'end' ? part.thread : part.call.thread
    if (isOurs.size === 0) isOurs.set(thread, true)
    const ours = isOurs.get(thread)
    if (ours === undefined) {
      const parts = early.get(thread) ?? []
      early.set(thread, parts)
      parts.push(part)
      return
    }
    if (!ours) return
    if (part.type === 'begin') {
      const moment: Moment = { type: 'begin', call: part.call }
      begun.set(thread, moment)
      moments.push(moment)
      return
    }
    if (part.type === 'whole') {
      moments.push({ type: 'begin', call: part.call })
      end(part.call)
      return
    }
    const moment = begun.get(thread)
    begun.delete(thread)
    if (!moment) return
    moment.call = completed(moment.call, part.rest) // the beginning needs the result too
    end(moment.call)
  }

  const end = (call: Call): void => {
    if (call.result !== null) moments.push({ type: 'end', call })
    if (!['clone', 'clone3', 'fork', 'vfork'].includes(call.name) || call.result === null) return
    isOurs.set(
      call.result,
      call.args.some((arg) => arg.includes('CLONE_THREAD')),
    )
    for (const part of early.get(call.result) ?? []) take(part)
    early.delete(call.result)
  }

  for await (const line of createInterface({ input: createReadStream(file, 'latin1') })) {
    const part = partOf(line)
    if (part) take(part)
  }
  return moments
}
