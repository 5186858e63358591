import { isIP } from 'node:net'
import { type ChannelCredentials, credentials } from '@grpc/grpc-js'
import { AppError, messageOf } from '../../errors.ts'

/** Opens the TLS connections of a channel: a private part of the library's credentials. */
interface Connector {
  readonly connectionOptions: { servername?: string }
  connect(...given: readonly unknown[]): Promise<unknown>
}

interface SecureCredentials {
  _createSecureConnector: (...given: readonly unknown[]) => Connector
}

/**
 * Returns the result of `build`, which creates a client, with two changes to its TLS connections:
 * T1: a node that is named by its IP address gets no server name, because TLS has none for addresses and Node.js refuses
 * one. The certificate is then checked against the address.
 * T2: `onConnected` gets the error of each connection, or undefined when one succeeds.
 */
export const withSecureChannels = <T>(onConnected: (error: unknown) => void, build: () => T): T => {
  const { createSsl } = credentials
  credentials.createSsl = (...given) => adapted(createSsl(...given), onConnected)
  try {
    return build() // the client creates its credentials in its constructor
  } finally {
    credentials.createSsl = createSsl
  }
}

const adapted = (created: ChannelCredentials, onConnected: (error: unknown) => void): ChannelCredentials => {
  const secure = created as unknown as SecureCredentials
  const create = secure._createSecureConnector.bind(created)
  secure._createSecureConnector = (...given) => {
    const connector = create(...given)
    if (isIP(connector.connectionOptions.servername ?? '')) delete connector.connectionOptions.servername // T1
    const connect = connector.connect.bind(connector)
    connector.connect = async (...socket) => {
      try {
        const connected = await connect(...socket)
        onConnected(undefined)
        return connected
      } catch (error) {
        onConnected(error) // T2
        throw error
      }
    }
    return connector
  }
  return created
}

/** The codes that Node.js gives to certificates that it cannot verify. */
const UNVERIFIED =
  /^(UNABLE_TO_|CERT_|SELF_SIGNED_|DEPTH_ZERO_|ERR_TLS_CERT_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|HOSTNAME_)/
/** The codes of a reply that is not TLS. */
const NOT_TLS = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/

/** Returns the error for the operator if a TLS connection cannot work with these settings. */
export const tlsRefusalOf = (error: unknown): AppError | undefined => {
  const code = String((error as NodeJS.ErrnoException | undefined)?.code ?? '')
  if (UNVERIFIED.test(code)) {
    const problem = `its certificate cannot be verified: ${messageOf(error)}`
    const advice = 'set tlsCAFile to the certificate of the authority that issued it'
    return new AppError('bad_request', `${problem}; ${advice}`, { cause: error })
  }
  if (NOT_TLS.test(code))
    return new AppError('bad_request', 'it does not use TLS; set tls=false', { cause: error })
  return undefined
}
