# frozen_string_literal: true

threads 5, 5
quiet
# Without its reactor, which needs the C extension of nio4r.
queue_requests false
