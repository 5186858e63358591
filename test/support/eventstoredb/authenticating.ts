import { Metadata, ServerInterceptingCall, type ServerInterceptor, status } from '@grpc/grpc-js'

export interface Login {
  readonly username: string
  password: string
  /** Whether a certificate replaces the login where a call has none. */
  readonly isOptional?: boolean
}

/** Calls that need no user. */
const OPEN = /^\/event_store\.client\.(gossip|server_features)\./

/** Refuses each call with a wrong login, and calls without one where they need it. The login may change. */
export const authenticating =
  (login: Readonly<Login>): ServerInterceptor =>
  ({ path }, call) =>
    new ServerInterceptingCall(call, {
      start: (begin) =>
        begin({
          onReceiveMetadata: (metadata, receive) => {
            const [given] = metadata.get('authorization')
            const expected = `Basic ${Buffer.from(`${login.username}:${login.password}`).toString('base64')}`
            if (given === expected || (given === undefined && (login.isOptional || OPEN.test(path))))
              return receive(metadata)
            const [code, details] =
              given === undefined
                ? [status.PERMISSION_DENIED, 'Access Denied']
                : [status.UNAUTHENTICATED, 'Bad HTTP credentials']
            call.sendStatus({ code, details, metadata: new Metadata() })
          },
        }),
    })
