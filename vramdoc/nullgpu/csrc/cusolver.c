/* cuSOLVER: how much workspace each factorization asks for. The calls themselves are in the table (../abi).
 *
 * All sizes are estimates: NVIDIA publishes none. They follow the workspace that the LAPACK routine of the same name
 * documents for its blocked form, which has the right order (a block of rows for a QR, two more matrices for a
 * divide-and-conquer eigensolver) but is not what cuSOLVER allocates. Nothing is claimed on the host. */
#include "nullgpu.h"

enum { CUSOLVER_OK = 0 };

/* Rows that LAPACK's blocked routines work on at once, by the default of its ilaenv. */
enum { BLOCK = 32 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- elements of the matrix's type ---- */

static int64_t for_cholesky(int64_t n) { return n * BLOCK; }
static int64_t for_lu(int64_t m, int64_t n) { return least(m, n) * BLOCK; }
static int64_t for_qr(int64_t n) { return n * BLOCK; }
static int64_t for_bunch_kaufman(int64_t n) { return n * BLOCK; }
static int64_t for_svd(int64_t m, int64_t n) { return 3 * least(m, n) + most(m, n) + (m + n) * BLOCK; }
static int64_t for_jacobi_svd(int64_t m, int64_t n) { return m * n + m + n; }
static int64_t for_eigenvectors(int64_t n) { return 1 + 6 * n + 2 * n * n; }
static int64_t for_jacobi_eigenvectors(int64_t n) { return n * n + 3 * n; }
static int64_t for_general_eigenvectors(int64_t n) { return n * n + 4 * n; }

/* ---- calls of one type: the matrix is float, double, or complex of either ---- */

#define SIZES(T, ORGQR, ORMQR, SYEVD, SYEVJ)                                                                       \
    NULLGPU_API int cusolverDn##T##potrf_bufferSize(void *handle, int uplo, int n, void *a, int lda, int *size)    \
    {                                                                                                              \
        (void)handle, (void)uplo, (void)a, (void)lda;                                                              \
        *size = (int)for_cholesky(n);                                                                              \
        return CUSOLVER_OK;                                                                                        \
    }                                                                                                              \
    NULLGPU_API int cusolverDn##T##getrf_bufferSize(void *handle, int m, int n, void *a, int lda, int *size)       \
    {                                                                                                              \
        (void)handle, (void)a, (void)lda;                                                                          \
        *size = (int)for_lu(m, n);                                                                                 \
        return CUSOLVER_OK;                                                                                        \
    }                                                                                                              \
    NULLGPU_API int cusolverDn##T##geqrf_bufferSize(void *handle, int m, int n, void *a, int lda, int *size)       \
    {                                                                                                              \
        (void)handle, (void)m, (void)a, (void)lda;                                                                 \
        *size = (int)for_qr(n);                                                                                    \
        return CUSOLVER_OK;                                                                                        \
    }                                                                                                              \
    NULLGPU_API int cusolverDn##T##ORGQR##_bufferSize(void *handle, int m, int n, int k, void *a, int lda,         \
                                                      void *tau, int *size)                                        \
    {                                                                                                              \
        (void)handle, (void)m, (void)k, (void)a, (void)lda, (void)tau;                                             \
        *size = (int)for_qr(n);                                                                                    \
        return CUSOLVER_OK;                                                                                        \
    }                                                                                                              \
    NULLGPU_API int cusolverDn##T##ORMQR##_bufferSize(void *handle, int side, int transposed, int m, int n, int k, \
                                                      void *a, int lda, void *tau, void *c, int ldc, int *size)    \
    {                                                                                                              \
        (void)handle, (void)transposed, (void)k, (void)a, (void)lda, (void)tau, (void)c, (void)ldc;                \
        *size = (int)for_qr(side == 0 ? n : m);                                                                    \
        return CUSOLVER_OK;                                                                                        \
    }                                                                                                              \
    NULLGPU_API int cusolverDn##T##sytrf_bufferSize(void *handle, int n, void *a, int lda, int *size)              \
    {                                                                                                              \
        (void)handle, (void)a, (void)lda;                                                                          \
        *size = (int)for_bunch_kaufman(n);                                                                         \
        return CUSOLVER_OK;                                                                                        \
    }                                                                                                              \
    NULLGPU_API int cusolverDn##T##gesvd_bufferSize(void *handle, int m, int n, int *size)                         \
    {                                                                                                              \
        (void)handle;                                                                                              \
        *size = (int)for_svd(m, n);                                                                                \
        return CUSOLVER_OK;                                                                                        \
    }                                                                                                              \
    NULLGPU_API int cusolverDn##T##gesvdj_bufferSize(void *handle, int jobz, int economy, int m, int n, void *a,   \
                                                     int lda, void *s, void *u, int ldu, void *v, int ldv,         \
                                                     int *size, void *parameters)                                  \
    {                                                                                                              \
        (void)handle, (void)jobz, (void)economy, (void)a, (void)lda, (void)s, (void)u, (void)ldu, (void)v;         \
        (void)ldv, (void)parameters;                                                                               \
        *size = (int)for_jacobi_svd(m, n);                                                                         \
        return CUSOLVER_OK;                                                                                        \
    }                                                                                                              \
    NULLGPU_API int cusolverDn##T##gesvdjBatched_bufferSize(void *handle, int jobz, int m, int n, void *a,         \
                                                            int lda, void *s, void *u, int ldu, void *v, int ldv,  \
                                                            int *size, void *parameters, int batch)                \
    {                                                                                                              \
        (void)handle, (void)jobz, (void)a, (void)lda, (void)s, (void)u, (void)ldu, (void)v, (void)ldv;             \
        (void)parameters;                                                                                          \
        *size = (int)(batch * for_jacobi_svd(m, n));                                                               \
        return CUSOLVER_OK;                                                                                        \
    }                                                                                                              \
    NULLGPU_API int cusolverDn##T##gesvdaStridedBatched_bufferSize(                                                \
        void *handle, int jobz, int rank, int m, int n, void *a, int lda, long long stride_a, void *s,             \
        long long stride_s, void *u, int ldu, long long stride_u, void *v, int ldv, long long stride_v, int *size, \
        int batch)                                                                                                 \
    {                                                                                                              \
        (void)handle, (void)jobz, (void)rank, (void)a, (void)lda, (void)stride_a, (void)s, (void)stride_s;         \
        (void)u, (void)ldu, (void)stride_u, (void)v, (void)ldv, (void)stride_v;                                    \
        *size = (int)(batch * for_jacobi_svd(m, n));                                                               \
        return CUSOLVER_OK;                                                                                        \
    }                                                                                                              \
    NULLGPU_API int cusolverDn##T##SYEVD##_bufferSize(void *handle, int jobz, int uplo, int n, void *a, int lda,   \
                                                      void *w, int *size)                                          \
    {                                                                                                              \
        (void)handle, (void)jobz, (void)uplo, (void)a, (void)lda, (void)w;                                         \
        *size = (int)for_eigenvectors(n);                                                                          \
        return CUSOLVER_OK;                                                                                        \
    }                                                                                                              \
    NULLGPU_API int cusolverDn##T##SYEVJ##_bufferSize(void *handle, int jobz, int uplo, int n, void *a, int lda,   \
                                                      void *w, int *size, void *parameters)                        \
    {                                                                                                              \
        (void)handle, (void)jobz, (void)uplo, (void)a, (void)lda, (void)w, (void)parameters;                       \
        *size = (int)for_jacobi_eigenvectors(n);                                                                   \
        return CUSOLVER_OK;                                                                                        \
    }                                                                                                              \
    NULLGPU_API int cusolverDn##T##SYEVJ##Batched_bufferSize(void *handle, int jobz, int uplo, int n, void *a,     \
                                                             int lda, void *w, int *size, void *parameters,        \
                                                             int batch)                                            \
    {                                                                                                              \
        (void)handle, (void)jobz, (void)uplo, (void)a, (void)lda, (void)w, (void)parameters;                       \
        *size = (int)(batch * for_jacobi_eigenvectors(n));                                                         \
        return CUSOLVER_OK;                                                                                        \
    }

SIZES(S, orgqr, ormqr, syevd, syevj)
SIZES(D, orgqr, ormqr, syevd, syevj)
SIZES(C, ungqr, unmqr, heevd, heevj)
SIZES(Z, ungqr, unmqr, heevd, heevj)

/* ---- calls of every type: sizes in bytes, on the device and on the host ---- */

enum { REAL_32 = 0, REAL_64 = 1, COMPLEX_32 = 4, COMPLEX_64 = 5 };

static int answer(int64_t elements, int data_type, size_t *device, size_t *host)
{
    size_t element = data_type == COMPLEX_64                           ? 16
                     : data_type == REAL_64 || data_type == COMPLEX_32 ? 8
                                                                       : 4;

    *device = (size_t)elements * element;
    *host = 0;
    return CUSOLVER_OK;
}

NULLGPU_API int cusolverDnXpotrf_bufferSize(void *handle, void *parameters, int uplo, int64_t n, int type, void *a,
                                            int64_t lda, int compute, size_t *device, size_t *host)
{
    (void)handle, (void)parameters, (void)uplo, (void)a, (void)lda, (void)compute;
    return answer(for_cholesky(n), type, device, host);
}

NULLGPU_API int cusolverDnXgeqrf_bufferSize(void *handle, void *parameters, int64_t m, int64_t n, int type, void *a,
                                            int64_t lda, int tau_type, void *tau, int compute, size_t *device,
                                            size_t *host)
{
    (void)handle, (void)parameters, (void)m, (void)a, (void)lda, (void)tau_type, (void)tau, (void)compute;
    return answer(for_qr(n), type, device, host);
}

NULLGPU_API int cusolverDnXsyevd_bufferSize(void *handle, void *parameters, int jobz, int uplo, int64_t n, int type,
                                            void *a, int64_t lda, int w_type, void *w, int compute, size_t *device,
                                            size_t *host)
{
    (void)handle, (void)parameters, (void)jobz, (void)uplo, (void)a, (void)lda, (void)w_type, (void)w;
    (void)compute;
    return answer(for_eigenvectors(n), type, device, host);
}

NULLGPU_API int cusolverDnXsyevBatched_bufferSize(void *handle, void *parameters, int jobz, int uplo, int64_t n,
                                                  int type, void *a, int64_t lda, int w_type, void *w, int compute,
                                                  size_t *device, size_t *host, int64_t batch)
{
    (void)handle, (void)parameters, (void)jobz, (void)uplo, (void)a, (void)lda, (void)w_type, (void)w;
    (void)compute;
    return answer(batch * for_jacobi_eigenvectors(n), type, device, host);
}

NULLGPU_API int cusolverDnXgeev_bufferSize(void *handle, void *parameters, int left, int right, int64_t n, int type,
                                           void *a, int64_t lda, int w_type, void *w, int left_type, void *vl,
                                           int64_t ldvl, int right_type, void *vr, int64_t ldvr, int compute,
                                           size_t *device, size_t *host)
{
    (void)handle, (void)parameters, (void)left, (void)right, (void)a, (void)lda, (void)w_type, (void)w;
    (void)left_type, (void)vl, (void)ldvl, (void)right_type, (void)vr, (void)ldvr, (void)compute;
    return answer(for_general_eigenvectors(n), type, device, host);
}

NULLGPU_API int cusolverDnXsytrs_bufferSize(void *handle, int uplo, int64_t n, int64_t columns, int type, void *a,
                                            int64_t lda, const int64_t *pivots, int b_type, void *b, int64_t ldb,
                                            size_t *device, size_t *host)
{
    (void)handle, (void)uplo, (void)n, (void)a, (void)lda, (void)pivots, (void)b_type, (void)b, (void)ldb;
    return answer(n * columns, type, device, host);
}
