/** Requests over connections that Node pools: the run that asks may have ended, although the connection is open. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import type http from 'node:http'
import type http2 from 'node:http2'
import { callSite, thrownAt } from './callSite.ts'
import { guardWrites, senderOfContext, usersOf } from './connectionUsers.ts'
import { refusalAfterEnd } from './endedRun.ts'

const builtin = process.getBuiltinModule.bind(process)

type Fetch = typeof globalThis.fetch

/** `fetch` and the package undici send a request that waited for a connection in the context of the request before it. */
export const followRequests = (): void => {
  const senders = new WeakMap<object, ReturnType<typeof senderOfContext>>()
  subscribe('undici:request:create', (message) => {
    const { request } = message as { readonly request: object }
    senders.set(request, senderOfContext())
  })
  subscribe('undici:client:sendHeaders', (message) => {
    const { request, socket } = message as { readonly request: object; readonly socket: object }
    usersOf(socket)?.beginRequest(senders.get(request))
  })
}

/** Its errors have the stack of the call, because Node's begin inside of it. */
export const boundFetch = (fetch: Fetch): Fetch => {
  const bound: { fetch: Fetch } = {
    fetch: (input, init) => {
      const cause = refusalAfterEnd()
      const site = callSite(bound.fetch)
      if (cause) return Promise.reject(thrownAt(new TypeError('fetch failed', { cause }), site))
      return fetch(input, init).catch((error: unknown) => {
        throw error instanceof TypeError && error !== init?.signal?.reason ? thrownAt(error, site) : error
      })
    },
  }
  return bound.fetch
}

/** The class is also a property of `node:http` and of its own prototype. */
export const boundWebSocket = (): unknown => {
  const module = builtin('node:http')
  const { WebSocket } = module
  const bound = new Proxy(WebSocket, {
    construct: (target, args, newTarget) => {
      const refusal = refusalAfterEnd()
      if (refusal) throw refusal
      return Reflect.construct(target, args, newTarget) as object
    },
  })
  for (const [target, name] of [
    [module, 'WebSocket'],
    [WebSocket.prototype, 'constructor'],
  ] as const)
    Object.defineProperty(target, name, { value: bound, writable: true, configurable: true })
  return bound
}

/** Fields that agents use and the types leave out. */
interface Internals {
  onSocket(socket: unknown, error?: Error): void
}

type AddRequest = (this: http.Agent, request: http.ClientRequest, ...rest: unknown[]) => void

export const patchHttp = (): void => {
  const { prototype } = builtin('node:http').Agent
  const addRequest = Reflect.get(prototype, 'addRequest') as AddRequest
  const checked: AddRequest = function (request, ...rest) {
    const refusal = refusalAfterEnd()
    const internals = request as unknown as Internals
    if (refusal) return internals.onSocket(null, refusal)
    // The agent sends a request that waited for a connection in the context of the request before it.
    const inContext = AsyncLocalStorage.snapshot()
    const onSocket = internals.onSocket.bind(request)
    internals.onSocket = (...given) => inContext(onSocket, ...given)
    Reflect.apply(addRequest, this, [request, ...rest])
  }
  Object.defineProperty(prototype, 'addRequest', { value: checked, writable: true, configurable: true })
}

/** Node sends the frames of a session in no context of a run, so each request and each write to it is checked. */
export const patchHttp2 = (): void => {
  const module = builtin('node:http2')
  const { connect } = module
  module.connect = (...args: unknown[]) => {
    const session = Reflect.apply(connect, module, args) as http2.ClientHttp2Session
    guardSession(session)
    return session
  }
}

const guardSession = (session: http2.ClientHttp2Session): void => {
  const { socket } = session
  const users = usersOf(socket) ?? usersOf(Reflect.get(socket, 'stream') ?? {}) // a socket of the tunnel is wrapped
  if (!users) return
  users.unguard()
  for (const name of ['request', 'ping', 'settings', 'goaway'] as const) {
    const original = session[name] as (...args: unknown[]) => unknown
    const checked = (...args: unknown[]): unknown => {
      const refusal = users.claim()
      if (refusal) throw refusal
      const result = Reflect.apply(original, session, args)
      if (name === 'request') guardWrites(result as http2.ClientHttp2Stream, users)
      return result
    }
    Object.defineProperty(session, name, { value: checked, configurable: true, writable: true })
  }
}
