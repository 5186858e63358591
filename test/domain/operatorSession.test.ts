import { operatorSession } from '../../src/domain/operatorSession.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(operatorSession, { correlation_id: 'c' })
const session_id = 's'
const signOut = { type: 'EndOperatorSession', session_id, now: '2026-05-01T10:00:00.000Z' } as const
const signedOut = { type: 'OperatorSignedOut', session_id, at: '2026-05-01T10:00:00.000Z' } as const

const sessions = suite('a session of the operator')
sessions('ends once', () => {
  given().when(signOut).then(signedOut)
  given(signedOut).when(signOut).then()
})
sessions.run()
