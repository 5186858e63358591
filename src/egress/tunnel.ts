import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import { ProtocolViolation } from '../sandbox/frames.ts'
import { AddressNames } from './addressNames.ts'
import {
  type Found,
  FRAME,
  type Frame,
  FrameReader,
  jsonFrame,
  MAX_LOOKUPS,
  MAX_STREAMS,
  type NetworkError,
  OversizedFrame,
} from './frames.ts'
import { hostOf, type HostPattern } from './hosts.ts'
import { paced } from './pace.ts'
import { type Admit, isStillListed, type Target } from './policy.ts'
import { EgressError, refusedBy } from './refusal.ts'
import { EgressStream } from './stream.ts'
import { Turns } from './turns.ts'

export interface TunnelDeps {
  readonly admit: Admit
  /** The allow list of the project at this moment; null: every public host. */
  readonly network: () => readonly HostPattern[] | null
  /** Takes a place for one connection among those of all children; false when there is none. */
  readonly takePlace: () => boolean
  readonly givePlaceBack: () => void
}

export interface Tunnel {
  /** Bytes of both directions, with the headers of frames. */
  readonly bytes: number
  /** Concurrent streams. */
  readonly streams: number
  /** Closes every stream that the list of the project no longer contains. */
  closeUnlisted(): void
  /** Closes every stream on which no byte moved since the last call. */
  closeIdle(): void
}

/** Bytes that wait in the pipe to the child. Above this, neither targets nor the child are read. */
const MAX_QUEUED = 256 << 10

/** Memory of one waiting frame beside its bytes: a target may send bytes one by one. */
const WAITING_FRAME_BYTES = 512

/** Cost in bytes of one frame beside its payload, and of one that opens a connection or asks the DNS. */
const FRAME_COST = 64
const ASK_COST = 16 << 10

/** Characters of a request to open or look up. */
const MAX_REQUEST = 1024

/**
 * Serves the connections of one child over its pipe. T1: a frame that the child's side would never send destroys the
 * pipe with a `ProtocolViolation`. T2: at most `MAX_QUEUED` bytes, with the memory of their frames, and one read wait in
 * the pipe. T3: one turn of the event loop moves a bounded number of bytes (turns.ts). T4: all streams end with the pipe.
 * T5: new connections and lookups are paced (pace.ts).
 */
export const serveTunnel = (pipe: Socket, deps: TunnelDeps): Tunnel => {
  const reader = new FrameReader()
  const streams = new Map<number, EgressStream>()
  const names = new AddressNames()
  const waitMs = paced()
  const namesOf = (address: string) => names.of(address)
  let lookups = 0
  /** Places that the streams have. */
  let places = 0
  let lastId = 0
  let bytes = 0
  /** Frames in the pipe. */
  let waiting = 0
  let paused = false
  let ended = false

  const queued = () => pipe.writableLength + waiting * WAITING_FRAME_BYTES
  const mayRead = () => !ended && !turns.over && queued() < MAX_QUEUED

  const send = (frame: Buffer): void => {
    if (ended) return
    bytes += frame.length
    turns.spend(frame.length)
    waiting++
    pipe.write(frame, onWritten)
    if (!mayRead()) pause()
  }

  const onWritten = () => {
    if (--waiting === 0 && paused) resume()
  }

  const pause = () => {
    if (paused) return
    paused = true
    pipe.pause()
    for (const stream of streams.values()) stream.pause()
  }

  /** Reads on, beginning with the frames that were received already. */
  const resume = (): void => {
    if (!mayRead()) return
    take()
    if (!mayRead()) return
    paused = false
    pipe.resume()
    for (const stream of streams.values()) stream.resume()
  }
  const turns = new Turns(resume)

  const take = (): void => {
    try {
      while (mayRead()) {
        const frame = reader.next()
        if (!frame) return
        turns.spend(frame.payload.length + FRAME_COST)
        onFrame(frame)
      }
    } catch (error) {
      if (!(error instanceof ProtocolViolation) && !(error instanceof OversizedFrame)) throw error
      pipe.destroy(error instanceof ProtocolViolation ? error : new ProtocolViolation(error.message)) // T1
    }
  }

  const onFrame = ({ kind, id, payload }: Frame): void => {
    switch (kind) {
      case FRAME.open:
        return open(newId(id), requestOf(payload, true))
      case FRAME.lookup:
        if (lookups >= MAX_LOOKUPS)
          throw new ProtocolViolation(`Expected at most ${MAX_LOOKUPS} lookups at a time`)
        return void lookUp(newId(id), requestOf(payload, false))
      case FRAME.data:
        return streamOf(id).onData(payload)
      case FRAME.end:
        return streamOf(id).onEnd()
      case FRAME.credit:
        if (payload.length !== 4) throw new ProtocolViolation('Expected credit of 4 bytes')
        return streamOf(id).onCredit(payload.readUInt32BE())
      case FRAME.close:
        return streamOf(id).onClose()
      default:
        throw new ProtocolViolation(`Expected a kind of frame, got ${kind}`)
    }
  }

  const newId = (id: number): number => {
    if (id <= lastId) throw new ProtocolViolation(`Expected an id over ${lastId}, got ${id}`)
    return (lastId = id)
  }

  const streamOf = (id: number): EgressStream => {
    const stream = streams.get(id)
    if (stream) return stream
    throw new ProtocolViolation(`Expected the id of an open stream, got ${id}`)
  }

  const open = (id: number, target: Target & { readonly port: number }): void => {
    if (streams.size >= MAX_STREAMS)
      throw new ProtocolViolation(`Expected at most ${MAX_STREAMS} connections of a child`)
    turns.spend(ASK_COST)
    const placed = deps.takePlace()
    if (placed) places++
    const stream = new EgressStream(id, target, {
      send,
      get mayRead() {
        return mayRead()
      },
      onGone: () => {
        if (!streams.delete(id) || !placed) return
        places--
        deps.givePlaceBack()
      },
    })
    streams.set(id, stream)
    if (!placed) return stream.fail(refusedBy.busy().fields)
    admitted(target)
      .then((addresses) => {
        if (!ended) stream.dial(addresses)
      })
      .catch((error: unknown) => stream.fail(fieldsOf(error)))
  }

  const lookUp = async (id: number, target: Target): Promise<void> => {
    lookups++
    turns.spend(ASK_COST)
    let found: Found
    try {
      const addresses = await admitted(target)
      const host = hostOf(target.host)
      if (host?.kind === 'name') for (const { address } of addresses) names.add(address, host.name)
      found = { addresses }
    } catch (error) {
      found = { error: fieldsOf(error) }
    }
    lookups--
    send(jsonFrame(FRAME.found, id, found))
  }

  const admitted = async (target: Target) => {
    const ms = waitMs(clock.monotonic())
    if (ms > 0) await delay(ms, undefined, { ref: false }) // T5
    return deps.admit({ ...target, network: deps.network(), namesOf })
  }

  const end = () => {
    if (ended) return
    ended = true
    for (const stream of streams.values()) stream.destroy() // T4
    streams.clear()
    for (; places > 0; places--) deps.givePlaceBack()
  }

  pipe.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    turns.spend(FRAME_COST)
    reader.add(chunk)
    take()
    if (!mayRead()) pause()
  })
  pipe.on('error', end)
  pipe.on('close', end)

  return {
    get bytes() {
      return bytes
    },
    get streams() {
      return streams.size
    },
    closeUnlisted: () => {
      const network = deps.network()
      for (const stream of streams.values()) {
        const { host, port } = stream.target
        if (!isStillListed({ host, port, network, namesOf }))
          stream.abort(refusedBy.network(host, port).fields)
      }
    },
    closeIdle: () => {
      for (const stream of streams.values()) stream.closeIfIdle()
    },
  }
}

const fieldsOf = (error: unknown): NetworkError =>
  error instanceof EgressError ? error.fields : { code: 'EIO', message: messageOf(error) }

function requestOf(payload: Buffer, withPort: true): Target & { readonly port: number }
function requestOf(payload: Buffer, withPort: false): Target
function requestOf(payload: Buffer, withPort: boolean): Target {
  if (payload.length <= MAX_REQUEST) {
    const { host, port, family } = fieldsIn(payload)
    const isHost = typeof host === 'string' && host !== ''
    const isPort = withPort
      ? Number.isInteger(port) && Number(port) >= 0 && Number(port) <= 65_535
      : port === undefined
    if (isHost && isPort && (family === 0 || family === 4 || family === 6))
      return { host, port: withPort ? Number(port) : null, family }
  }
  throw new ProtocolViolation('Expected a request with a host, a family and a port')
}

const fieldsIn = (payload: Buffer): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(payload.toString('utf8'))
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
